// SPDX-License-Identifier: Apache-2.0
// Mistakes in what was typed, through the real program: exit 64, the flag named, nothing sent, no stack trace. And what every
// look costs: no web server, database driver or logger is loaded for it.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createHome } from "../kit/command.ts";
import { assertClearFault } from "./kit.ts";

const program = fileURLToPath(new URL("../../src/bin/holdfast.ts", import.meta.url));
/** Nothing listens there: a command that would send something ends with 69 instead of 64. */
const nowhere = { HOLDFAST_URL: "http://127.0.0.1:1", HOLDFAST_TOKEN: "hft_x" };

test("a mistake exits 64 and names what is wrong", async (t) => {
  const home = createHome(t);
  const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
    [["nosuch"], /nosuch/],
    [["job", "lst"], /list/],
    [["job", "run"], /command/],
    [["status", "--bogus"], /--bogus/],
    [["agent", "--slots", "x"], /--slots.*whole number/],
    [["agent", "--on-stop", "x"], /--on-stop.*release, finish, leave/],
    [["agent", "--stop-grace", "10"], /--stop-grace.*duration/],
    [["job", "list", "--limit", "0"], /--limit/],
    [["job", "list", "--state", "lost"], /--state.*queued/],
    [["job", "run", "--memory", "lots", "--", "x"], /--memory.*8GiB/],
    [["job", "run", "--time-limit", "10", "--", "x"], /--time-limit/],
    [["job", "run", "--priority", "101", "--", "x"], /--priority/],
    [["job", "run", "--retries", "-1", "--", "x"], /--retries/],
    [["job", "run", "-e", "NAME", "--", "x"], /--env.*NAME=VALUE/],
    [["token", "create", "ci", "--scope", "all"], /--scope.*fleet:read/],
    [["job", "show", "job_x"], /'job_x' .*id of a job/],
    [["job", "cancel", "x"], /'x' .*id of a job/],
    [["token", "revoke", "ci"], /'ci' .*id of a token/],
    [["completion", "tcsh"], /bash, zsh, fish/],
  ];
  await Promise.all(
    mistakes.map(async ([args, pattern]) => {
      const { code, stdout, stderr } = await home.run(args, nowhere);
      assert.deepEqual([code, stdout], [64, ""], args.join(" "));
      assertClearFault(stderr);
      assert.match(stderr, pattern);
    }),
  );
});

test("job options that the parser cannot judge are faulted all at once", async (t) => {
  const home = createHome(t);
  const input = path.join(home.directory, "input.json");
  fs.writeFileSync(input, "{");
  const { code, stderr } = await home.run(
    ["job", "run", "--cwd", "here", "--arch", "vax", "--env-from", "NOT_SET", "--input", input, "--", "x"],
    nowhere,
  );
  assert.equal(code, 64);
  assertClearFault(stderr);
  for (const place of ["--cwd", "--arch", "--env-from", `--input ${input}`])
    assert.ok(stderr.includes(`  ${place}: `), place);
});

test("an input with a number that would lose digits is refused by its place, before anything is sent", async (t) => {
  const home = createHome(t);
  const input = path.join(home.directory, "input.json");
  fs.writeFileSync(input, '{"id":1970670598291982290}');
  const { code, stderr } = await home.run(["job", "submit", "--input", input, "--", "x"], nowhere);
  assert.equal(code, 64);
  assert.match(stderr, /\/id is a number with more digits/);
});

test("an address without a controller is one clear line, and the same as JSON with --json", async (t) => {
  const home = createHome(t);
  const { code, stderr } = await home.run(["status"], nowhere);
  assert.equal(code, 69);
  assertClearFault(stderr);
  const asked = await home.run(["job", "list", "--json"], nowhere);
  assert.deepEqual([asked.code, asked.stdout], [69, ""]);
  const { code: fault, details } = JSON.parse(asked.stderr) as { code: string; details: unknown };
  assert.deepEqual([fault, details], ["controller_unreachable", []]);
});

test("a mistake points to the help, and is JSON with --json", async (t) => {
  const home = createHome(t);
  assert.match((await home.run(["status", "--bogus"])).stderr, /^holdfast: .*--bogus.*\n {2}See --help\.\n$/);
  const { code, stderr } = await home.run(["job", "list", "--json", "--limit", "0"], nowhere);
  assert.equal(code, 64);
  assert.equal((JSON.parse(stderr) as { code: string }).code, "usage");
});

test("--json that belongs to the job's command is not ours", async (t) => {
  const home = createHome(t);
  for (const command of [
    ["--", "tool", "--json"],
    ["tool", "--json"],
  ]) {
    const { code, stderr } = await home.run(["job", "submit", ...command], nowhere);
    assert.equal(code, 69);
    assertClearFault(stderr);
  }
});

test("a database command without a database says how to name one", async (t) => {
  const { code, stderr } = await createHome(t).run(["db", "status"]);
  assert.equal(code, 87);
  assertClearFault(stderr);
  assert.match(stderr, /DATABASE_URL/);
});

test("a reader of the output that went away is no fault", async () => {
  // The program starts only after its reader has gone.
  const start = 'read -r _; exec "$0" "$@"';
  const child = spawn("bash", ["-c", start, process.execPath, program, "--help"], { stdio: ["pipe", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (piece: string) => {
    stderr += piece;
  });
  const ended = once(child, "close");
  const gone = once(child.stdout, "close");
  child.stdout.destroy();
  await gone;
  child.stdin.end("\n");
  assert.deepEqual([(await ended)[0], stderr], [0, ""]);
});

test("commands of people load no web server, database driver, logger or native library", (t) => {
  const { directory } = createHome(t);
  const list = path.join(directory, "loaded");
  const hook = `import { registerHooks } from "node:module"; import fs from "node:fs";
registerHooks({ load(url, context, next) { fs.appendFileSync(${JSON.stringify(list)}, url + "\\n"); return next(url, context); } });`;
  for (const args of [["--version"], ["job", "list"]]) {
    fs.writeFileSync(list, "");
    spawnSync(process.execPath, ["--import", `data:text/javascript,${encodeURIComponent(hook)}`, program, ...args], {
      env: { HOME: directory, ...nowhere },
    });
    const loaded = fs.readFileSync(list, "utf8");
    assert.match(loaded, /commander/);
    assert.doesNotMatch(loaded, /node_modules\/(?:fastify|pg|pino|koffi|ajv)\//);
  }
});
