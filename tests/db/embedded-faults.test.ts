// SPDX-License-Identifier: Apache-2.0
// The embedded server on a machine that is not tidy: other people's files, a strict umask, a pid that came back, a sudden death.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { type Embedded, startEmbedded } from "../../src/db/embedded.ts";
import { silentLog } from "../../src/std/log.ts";
import { cleanupOf } from "../kit/cleanup.ts";

function newRoot(t: TestContext): string {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "embedded-"));
  fs.chmodSync(root, 0o755);
  cleanupOf(t).defer(() => fs.rmSync(root, { recursive: true, force: true }));
  return root;
}

function start(t: TestContext, root: string): Promise<Embedded> {
  return startEmbedded({ root, log: silentLog, durable: false }).then((server) => cleanupOf(t).use(server));
}

test("files that are not a database of ours are never deleted: the start is refused and names them", async (t) => {
  const root = newRoot(t);
  const file = path.join(root, "database", "thesis.txt");
  fs.mkdirSync(path.dirname(file));
  fs.writeFileSync(file, "ten years");
  await assert.rejects(start(t, root), { code: "root_unusable" });
  assert.equal(fs.readFileSync(file, "utf8"), "ten years");
});

test("an empty directory in the database's place is used", async (t) => {
  const root = newRoot(t);
  fs.mkdirSync(path.join(root, "database"));
  await start(t, root);
});

test("a umask of 077 keeps nobody from starting in a new root", async (t) => {
  const root = path.join(newRoot(t), "a", "b");
  const before = process.umask(0o077);
  cleanupOf(t).defer(() => void process.umask(before));
  await start(t, root);
});

test("a pid file whose pid now belongs to a stranger keeps nobody from starting, and the stranger lives", async (t) => {
  const root = newRoot(t);
  const database = path.join(root, "database");
  const pidFile = path.join(database, "postmaster.pid");
  {
    await using server = await startEmbedded({ root, log: silentLog, durable: false });
    assert.notEqual(server.serverVersion, "");
  }
  const { uid, gid } = fs.statSync(database);
  // Of the server's own account: for another's, PostgreSQL is refused the look and takes the file for stale.
  const stranger = spawn("sleep", ["600"], { uid, gid, cwd: "/", stdio: "ignore" });
  await once(stranger, "spawn");
  cleanupOf(t).defer(() => void stranger.kill("SIGKILL"));
  fs.writeFileSync(pidFile, `${stranger.pid}\n${database}\n1700000000\n5432\n${database}\n\n  12345  0\nready   \n`);
  fs.chownSync(pidFile, uid, gid);
  await start(t, root);
  assert.equal(stranger.exitCode ?? stranger.signalCode, null);
});

test("a server that dies by itself says how, and the root can be started again", async (t) => {
  const root = newRoot(t);
  const server = await start(t, root);
  const pid = Number(fs.readFileSync(path.join(root, "database", "postmaster.pid"), "utf8").split("\n")[0]);
  process.kill(pid, "SIGKILL");
  assert.match(await server.exited, /^SIGKILL; /);
  await server[Symbol.asyncDispose]();
  await start(t, root);
});
