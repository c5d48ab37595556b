// SPDX-License-Identifier: Apache-2.0
// `holdfast up` as a stranger runs it: everything starts, a real job runs, everything stops, nothing is left, and the next
// start goes on with the data. Set-up faults are one clear line and an exit code of their own each.

import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { test } from "node:test";
import { readProcessStat } from "../../src/std/process.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createHome } from "../kit/command.ts";
import { until } from "../kit/until.ts";

/** Pids of running processes whose command line or working directory lies below the directory. */
function processesOf(directory: string): string[] {
  return fs.readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid) || readProcessStat(Number(pid))?.state === "Z") return false;
    try {
      return (
        fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(directory) ||
        fs.readlinkSync(`/proc/${pid}/cwd`).startsWith(directory)
      );
    } catch {
      return false;
    }
  });
}

test("up --once starts everything, runs a real job, stops everything and leaves nothing running", async (t) => {
  const home = createHome(t);
  const { code, stdout, stderr } = await home.run(["up", "--once"]);
  assert.equal(code, 0, stdout + stderr);
  for (const part of [
    /✓ database {4}PostgreSQL 1\d/,
    /✓ controller {2}http:\/\/127\.0\.0\.1:\d+/,
    /✓ node /,
    /│ .* words {2}README\.md/,
    /succeeded on .*"files":\d+/,
    /✓ models +two tiny GGUF files for llama\.cpp/,
    /✓ scene +red, behind http:\/\/127\.0\.0\.1:\d+/,
    /Who are you\? › I am red, a sample model of Holdfast\.\n/,
    /✓ scene +switched to blue, behind http/,
    /Who are you\? › I am blue, a sample model of Holdfast\.\n/,
    /Nothing is left running/,
  ]) {
    assert.match(stdout, part);
  }
  assert.deepEqual(processesOf(home.directory), []);
  assert.equal(fs.statSync(path.join(home.directory, "contexts.json")).mode & 0o777, 0o600);
  const again = await home.run(["up", "--once"]);
  assert.equal(again.code, 0, again.stdout + again.stderr);
  assert.deepEqual(processesOf(home.directory), []);
});

test("while up runs, the command line finds it; job run streams both outputs and exits with the job's code; Ctrl-C stops all", async (t) => {
  const home = createHome(t);
  const up = home.start(["up"]);
  await until("up is ready", () => up.stdout().includes("Ctrl-C stops everything") || up.process.exitCode !== null, {
    withinMs: 60_000,
  });
  assert.equal(up.process.exitCode, null, up.stdout() + up.stderr());

  const status = await home.run(["status"]);
  assert.match(status.stdout, /online/);
  const job = await home.run([
    "job",
    "run",
    "-e",
    "NAME=anna",
    "--",
    "sh",
    "-c",
    'echo "out $NAME"; echo problem >&2; exit 7',
  ]);
  assert.deepEqual([job.code, job.stdout], [7, "out anna\n"]);
  assert.match(job.stderr, /problem\n/);
  const listed = JSON.parse((await home.run(["job", "list", "--json"])).stdout) as {
    items: { state: string; exitCode: number }[];
  };
  assert.deepEqual([listed.items[0]?.state, listed.items[0]?.exitCode], ["failed", 7]);

  const binary = home.start(["job", "run", "--", "printf", "a\\377\\200b"]);
  assert.deepEqual([await binary.ended, binary.bytes()], [0, Buffer.from([0x61, 0xff, 0x80, 0x62])]);
  const missing = await home.run(["job", "run", "--", "no-such-program"]);
  assert.equal(missing.code, 127);
  assert.match(missing.stderr, /failed: no-such-program: .*no such program|ENOENT/);

  const long = home.start(["job", "run", "--", "sh", "-c", "echo begun; exec sleep 600"]);
  await until("the long job runs", () => long.stdout().includes("begun"));
  long.process.kill("SIGINT");
  assert.equal(await long.ended, 130);
  assert.match(long.stderr(), /cancelled/);

  const second = await home.run(["up"]);
  assert.equal(second.code, 84);
  assert.match(second.stderr, /^holdfast: the database in .* is in use by pid \d+/);
  up.process.kill("SIGINT");
  assert.equal(await up.ended, 0, up.stderr());
  assert.deepEqual(processesOf(home.directory), []);
});

test("a terminal that is closed under up stops everything in order, and a busy machine does not keep the next start", async (t) => {
  const home = createHome(t);
  const up = home.start(["up"]);
  await until("up is ready", () => up.stdout().includes("Ctrl-C stops everything"), { withinMs: 60_000 });
  const submitted = await home.run(["job", "submit", "--", "sleep", "600"]);
  assert.equal(submitted.code, 0, submitted.stderr);
  await until("it runs", async () =>
    (await home.run(["job", "show", submitted.stdout.trim()])).stdout.includes("running"),
  );
  up.process.stdout?.destroy();
  up.process.stderr?.destroy();
  up.process.kill("SIGHUP");
  assert.equal(await up.ended, 0);
  assert.deepEqual(processesOf(home.directory), []);

  const next = home.start(["up"]);
  await until("the next one is ready", () => next.stdout().includes("Ctrl-C stops everything"), { withinMs: 60_000 });
  assert.match(next.stdout(), /busy with earlier jobs: not waiting|succeeded on/);
  next.process.kill("SIGTERM");
  assert.equal(await next.ended, 0, next.stderr());
  assert.deepEqual(processesOf(home.directory), []);
});

test("up that is killed takes its agent along, and the next one recovers the database", async (t) => {
  const home = createHome(t);
  const up = home.start(["up"]);
  await until("up is ready", () => up.stdout().includes("Ctrl-C stops everything"), { withinMs: 60_000 });
  const stubborn = ["sh", "-c", "trap '' TERM; echo begun; while :; do sleep 0.1; done"];
  const { stdout } = await home.run(["job", "submit", "--", ...stubborn]);
  await until("it has begun", async () => (await home.run(["job", "logs", stdout.trim()])).stdout.includes("begun"));
  up.process.kill("SIGKILL");
  await up.ended;
  const next = await home.run(["up", "--once"]);
  assert.equal(next.code, 0, next.stdout + next.stderr);
  assert.deepEqual(processesOf(home.directory), []);
});

test("each fault of a set-up is one clear line with what to do, and an exit code of its own", async (t) => {
  const home = createHome(t);
  const taken = createServer();
  taken.listen(0, "127.0.0.1");
  await once(taken, "listening");
  cleanupOf(t).defer(() => void taken.close());
  const address = taken.address();
  assert.ok(typeof address === "object" && address !== null);
  const file = path.join(home.directory, "a file");
  fs.writeFileSync(file, "");
  const cases: readonly (readonly [string, readonly string[], Record<string, string>, number, RegExp])[] = [
    ["no database", ["controller"], {}, 87, /there is no database: set DATABASE_URL/],
    [
      "a database that is not there",
      ["controller"],
      { DATABASE_URL: "postgres://x@127.0.0.1:1/x" },
      88,
      /the database does not answer/,
    ],
    [
      "a database address that is none",
      ["controller"],
      { DATABASE_URL: "mysql://x" },
      78,
      /DATABASE_URL must begin with postgres/,
    ],
    ["port taken", ["up", "--once", "--listen", `127.0.0.1:${address.port}`], {}, 81, /is taken by another program/],
    [
      "an address that is not ours",
      ["controller", "--embedded", "--listen", "192.0.2.1:7440"],
      {},
      82,
      /cannot listen on 192\.0\.2\.1:7440/,
    ],
    ["a relative root", ["up", "--root", "here"], {}, 83, /must be an absolute path/],
    ["a root that is a file", ["up", "--root", file], {}, 83, /cannot be used as a directory/],
    ["a read-only place", ["up", "--root", "/proc/holdfast"], {}, 83, /\/proc\/holdfast/],
    [
      "a setting that is none",
      ["controller", "--embedded"],
      { HOLDFAST_LEASE_MS: "soon", HOLDFAST_SWEEP_MS: "-1" },
      78,
      /2 settings are not valid/,
    ],
    ["no context", ["status"], {}, 78, /no controller is known here/],
    [
      "nobody there",
      ["status"],
      { HOLDFAST_URL: "http://127.0.0.1:1", HOLDFAST_TOKEN: "hft_x" },
      69,
      /does not answer/,
    ],
    ["a command that does not exist", ["stats"], {}, 64, /unknown command/],
    ["an agent that is not paired", ["agent"], {}, 78, /not paired yet/],
  ];
  for (const [name, args, env, code, message] of cases) {
    const finished = await home.run(args, env);
    assert.equal(finished.code, code, `${name}: ${finished.stderr}`);
    assert.match(finished.stderr, message, name);
    assert.ok(!/\n\s+at /.test(finished.stderr), `${name}: a stack trace`);
  }
  assert.deepEqual(processesOf(home.directory), []);
});
