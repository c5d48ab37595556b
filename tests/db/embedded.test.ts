// SPDX-License-Identifier: Apache-2.0
// The embedded server: keeps its data, belongs to one process, and survives the sudden death of that process.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { startEmbedded } from "../../src/db/embedded.ts";
import { silentLog } from "../../src/std/log.ts";
import { cleanupOf } from "../kit/cleanup.ts";

function newRoot(t: TestContext): string {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "embedded-"));
  fs.chmodSync(root, 0o755);
  cleanupOf(t).defer(() => fs.rmSync(root, { recursive: true, force: true }));
  return root;
}

async function query(connection: pg.ClientConfig, sql: string): Promise<readonly unknown[]> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

test("data survives a stop and a start; sockets and files are closed to others; no TCP", async (t) => {
  const root = newRoot(t);
  {
    await using server = await startEmbedded({ root, log: silentLog });
    await query(server.owner, "create table kept (n int); insert into kept values (7)");
    assert.equal(fs.statSync(path.join(root, "database")).mode & 0o777, 0o700);
    assert.deepEqual(await query(server.owner, "show listen_addresses"), [{ listen_addresses: "" }]);
    assert.deepEqual(await query(server.owner, "show fsync"), [{ fsync: "on" }]);
  }
  await using server = await startEmbedded({ root, log: silentLog });
  assert.deepEqual(await query(server.owner, "select n from kept"), [{ n: 7 }]);
});

test("a second start on the same root is refused and names the holder; the first one is not disturbed", async (t) => {
  const root = newRoot(t);
  await using server = await startEmbedded({ root, log: silentLog });
  await assert.rejects(startEmbedded({ root, log: silentLog }), (error: { code: string; message: string }) => {
    assert.equal(error.code, "root_in_use");
    assert.match(error.message, new RegExp(`pid ${process.pid}`));
    return true;
  });
  assert.deepEqual(await query(server.owner, "select 1 as one"), [{ one: 1 }]);
});

test("a server that a killed process left is taken over, with its data", async (t) => {
  const root = newRoot(t);
  const holder = spawn(process.execPath, [fileURLToPath(new URL("../kit/embedded-main.ts", import.meta.url)), root], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(holder.stdout, "data");
  const closed = once(holder, "exit");
  holder.kill("SIGKILL");
  await closed;
  await using server = await startEmbedded({ root, log: silentLog });
  assert.deepEqual(await query(server.owner, "select n from kept"), [{ n: 1 }]);
});

test("a root whose socket path is too long, and data of another major version, are refused with what to do", async (t) => {
  await assert.rejects(startEmbedded({ root: `/tmp/${"x".repeat(100)}`, log: silentLog }), { code: "root_unusable" });
  const root = newRoot(t);
  await (await startEmbedded({ root, log: silentLog }))[Symbol.asyncDispose]();
  fs.writeFileSync(path.join(root, "database", "PG_VERSION"), "16\n");
  await assert.rejects(startEmbedded({ root, log: silentLog }), { code: "database_major_mismatch" });
});
