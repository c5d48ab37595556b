// SPDX-License-Identifier: Apache-2.0
// The command starts on any Node from 18 on: it goes over to the pinned runtime, with its pid's signals and exit code, or says
// in one line what to do.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";

const launcher = fileURLToPath(new URL("../src/bin/holdfast.js", import.meta.url));
const pinned = fileURLToPath(new URL(`../node_modules/node-linux-${process.arch}`, import.meta.url));

/** Says which runtime runs it and with what, waits for its input to end, and exits with 7. */
const PROGRAM = `
process.on("SIGTERM", () => process.exit(9));
process.stdin.on("close", () => process.exit(7)).resume();
process.stdout.write(JSON.stringify({ version: process.versions.node, argv: process.argv.slice(2) }) + "\\n");
`;

/** A checkout with the real launcher and a program of our own; with or without the runtime that npm installs. */
function makeCheckout(t: TestContext, options: { readonly hasRuntime: boolean }): string {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "runtime-"));
  t.after(() => fs.rmSync(root, { recursive: true, force: true }));
  fs.mkdirSync(path.join(root, "bin"));
  fs.mkdirSync(path.join(root, "node_modules"));
  fs.writeFileSync(path.join(root, "package.json"), '{ "type": "module" }');
  fs.copyFileSync(launcher, path.join(root, "bin", "holdfast.js"));
  fs.writeFileSync(path.join(root, "bin", "holdfast.ts"), PROGRAM);
  if (options.hasRuntime) fs.symlinkSync(pinned, path.join(root, "node_modules", path.basename(pinned)));
  return path.join(root, "bin", "holdfast.js");
}

/** A runtime that calls itself 20, whatever the machine has: a preloaded file changes what the launcher reads. */
function oldNode(checkout: string, withExecve: boolean): readonly string[] {
  const preload = path.join(path.dirname(checkout), "pretend.cjs");
  const hide = withExecve ? "" : "process.execve = undefined;";
  fs.writeFileSync(
    preload,
    `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } }); ${hide}`,
  );
  return [process.execPath, "--require", preload, checkout];
}

for (const withExecve of [false, true]) {
  const way = withExecve ? "by execve" : "by a child";
  test(`an older Node goes over to the pinned runtime ${way}: arguments, input and exit code pass through`, (t) => {
    const [command = "", ...argv] = oldNode(makeCheckout(t, { hasRuntime: true }), withExecve);
    const { status, stdout, stderr } = spawnSync(command, [...argv, "a b", "--c"], { input: "", encoding: "utf8" });
    assert.equal(stderr, "");
    assert.deepEqual(JSON.parse(stdout), { version: process.versions.node, argv: ["a b", "--c"] });
    assert.equal(status, 7);
  });

  test(`a signal reaches the program on the pinned runtime ${way}, and its exit code comes back`, async (t) => {
    const [command = "", ...argv] = oldNode(makeCheckout(t, { hasRuntime: true }), withExecve);
    const child = spawn(command, argv, { stdio: ["pipe", "pipe", "inherit"] });
    await once(child.stdout, "data");
    child.kill("SIGTERM");
    assert.deepEqual(await once(child, "exit"), [9, null]);
  });
}

test("without the pinned runtime an older Node says in one line what to do and exits with 69", (t) => {
  const [command = "", ...argv] = oldNode(makeCheckout(t, { hasRuntime: false }), false);
  const { status, stdout, stderr } = spawnSync(command, argv, { encoding: "utf8" });
  assert.equal(stdout, "");
  assert.match(stderr, /^holdfast: needs Node 24\.7, this is 20\.0\.0 .*npm install --include=optional.*\n$/);
  assert.equal(status, 69);
});

test("a new enough Node runs the program itself and keeps its compile cache in the user's home, for this user alone", (t) => {
  const checkout = makeCheckout(t, { hasRuntime: false });
  const cache = path.join(path.dirname(checkout), "cache");
  const { status } = spawnSync(process.execPath, [checkout], { input: "", env: { XDG_CACHE_HOME: cache } });
  assert.equal(status, 7);
  const { mode } = fs.statSync(path.join(cache, "holdfast", "compiled"));
  assert.equal(mode & 0o077, 0);
});

test("the command is executable and parses without a type stripper", () => {
  fs.accessSync(launcher, fs.constants.X_OK);
  assert.equal(spawnSync(process.execPath, ["--check", launcher]).status, 0);
});
