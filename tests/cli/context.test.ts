// SPDX-License-Identifier: Apache-2.0
// The context file: private, whole, and every fault in it named with its place.

import assert from "node:assert/strict";
import { once } from "node:events";
import fs from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { test } from "node:test";
import { contextFileFrom, readContext, readContexts, useContext, writeContext } from "../../src/cli/context-file.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createHome } from "../kit/command.ts";
import { assertClearFault } from "./kit.ts";

const token = `hft_${"A".repeat(43)}`;
const other = `hft_${"B".repeat(43)}`;
const url = "http://127.0.0.1:7440";

test("the file is found by HOLDFAST_CONTEXT_FILE, then XDG_CONFIG_HOME, then the home directory", () => {
  assert.equal(contextFileFrom({ HOLDFAST_CONTEXT_FILE: "/a/b", XDG_CONFIG_HOME: "/x", HOME: "/h" }), "/a/b");
  assert.equal(contextFileFrom({ XDG_CONFIG_HOME: "/x", HOME: "/h" }), "/x/holdfast/contexts.json");
  assert.equal(contextFileFrom({ HOLDFAST_CONTEXT_FILE: "", HOME: "/h" }), "/h/.config/holdfast/contexts.json");
});

test("writing makes a 0600 file, keeps the other contexts, and leaves no partial file", (t) => {
  const { directory } = createHome(t);
  const file = path.join(directory, "deep", "contexts.json");
  writeContext(file, "local", { url, token });
  writeContext(file, "rack", { url: "https://rack", token: other });
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  assert.equal(fs.statSync(path.dirname(file)).mode & 0o777, 0o700);
  assert.deepEqual(readContexts(file), {
    current: "rack",
    contexts: { local: { url, token }, rack: { url: "https://rack", token: other } },
  });
  useContext(file, "local");
  assert.equal(readContexts(file)?.current, "local");
  assert.deepEqual(readContext(file, "rack"), { url: "https://rack", token: other });
  assert.throws(() => useContext(file, "nope"), { code: "not_found", message: /local, rack/ });
  assert.deepEqual(fs.readdirSync(path.dirname(file)), ["contexts.json"]);
});

test("a file that others can read is refused with the command that mends it", async (t) => {
  const home = createHome(t);
  const file = path.join(home.directory, "contexts.json");
  writeContext(file, "local", { url, token });
  for (const mode of [0o640, 0o604, 0o644]) {
    fs.chmodSync(file, mode);
    const { code, stderr } = await home.run(["context"]);
    assert.equal(code, 78);
    assertClearFault(stderr);
    assert.match(stderr, /chmod 600/);
  }
});

test("all faults of the file are named at once with their places, and no token is printed", async (t) => {
  const home = createHome(t);
  const file = path.join(home.directory, "contexts.json");
  const broken = { current: 1, extra: true, contexts: { a: { url: "here", token: "secret-of-a", more: 1 } } };
  fs.writeFileSync(file, JSON.stringify(broken), { mode: 0o600 });
  const { code, stderr, stdout } = await home.run(["context"]);
  assert.equal(code, 78);
  assertClearFault(stderr);
  for (const place of ["/current", "/extra", "/contexts/a/url", "/contexts/a/token", "/contexts/a/more"])
    assert.ok(stderr.includes(`  ${place}: `), place);
  assert.ok(!`${stdout}${stderr}`.includes("secret-of-a"));
  fs.writeFileSync(file, "{");
  assert.match((await home.run(["context"])).stderr, /is not JSON/);
});

test("context shows and lists without a token, and use switches", async (t) => {
  const home = createHome(t);
  const file = path.join(home.directory, "contexts.json");
  writeContext(file, "local", { url, token });
  writeContext(file, "rack", { url: "https://rack", token: other });
  const shown = await home.run(["context"]);
  assert.match(shown.stdout, /context +rack\n/);
  const listed = await home.run(["context", "list", "--json"]);
  assert.deepEqual(JSON.parse(listed.stdout), [
    { name: "local", url, current: false },
    { name: "rack", url: "https://rack", current: true },
  ]);
  assert.equal((await home.run(["context", "use", "local"])).code, 0);
  const after = await home.run(["context", "show", "--json"]);
  assert.deepEqual(JSON.parse(after.stdout), { name: "local", url, file });
  const all = [shown, listed, after].map(({ stdout, stderr }) => stdout + stderr).join("");
  assert.ok(!all.includes(token) && !all.includes(other));
});

test("the environment wins over the file", async (t) => {
  const home = createHome(t);
  writeContext(path.join(home.directory, "contexts.json"), "local", { url, token });
  const { stdout } = await home.run(["context"], { HOLDFAST_URL: "http://there:1", HOLDFAST_TOKEN: "hft_x" });
  assert.match(stdout, /\(environment\)/);
  assert.match(stdout, /http:\/\/there:1/);
  assert.ok(!stdout.includes("hft_"));
});

test("without a context the way to one is said, with an exit code of its own", async (t) => {
  const home = createHome(t);
  for (const args of [["status"], ["job", "list"], ["node", "list"], ["job", "run", "--", "true"], ["context"]]) {
    const { code, stderr, stdout } = await home.run(args);
    assert.deepEqual([code, stdout], [78, ""], args.join(" "));
    assertClearFault(stderr);
    assert.match(stderr, /npm start/);
  }
});

test("half of the environment's pair is refused: the token of the file goes to no other address", async (t) => {
  const home = createHome(t);
  writeContext(path.join(home.directory, "contexts.json"), "local", { url, token });
  const seen: unknown[] = [];
  const stranger = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.end();
  });
  stranger.listen(0, "127.0.0.1");
  await once(stranger, "listening");
  cleanupOf(t).defer(() => void stranger.close());
  const address = stranger.address();
  assert.ok(typeof address === "object" && address !== null);
  const { code, stderr } = await home.run(["job", "list"], { HOLDFAST_URL: `http://127.0.0.1:${address.port}` });
  assert.deepEqual([code, seen], [78, []]);
  assertClearFault(stderr);
  assert.match(stderr, /HOLDFAST_TOKEN is not/);
  assert.equal((await home.run(["job", "list"], { HOLDFAST_TOKEN: other })).code, 78);
});

test("a name that every object has is no context", (t) => {
  const file = path.join(createHome(t).directory, "contexts.json");
  writeContext(file, "local", { url, token });
  for (const name of ["constructor", "__proto__", "toString"]) {
    assert.equal(readContext(file, name), undefined, name);
    assert.throws(() => useContext(file, name), { code: "not_found" }, name);
  }
  assert.equal(readContexts(file)?.current, "local");
});

test("a current context that is not among them is a fault of the file", (t) => {
  const file = path.join(createHome(t).directory, "contexts.json");
  fs.writeFileSync(file, JSON.stringify({ current: "gone", contexts: { local: { url, token } } }), { mode: 0o600 });
  assert.throws(() => readContexts(file), {
    code: "context_invalid",
    details: [{ place: "/current", problem: "must name one of the contexts" }],
  });
});
