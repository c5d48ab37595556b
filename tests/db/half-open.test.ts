// SPDX-License-Identifier: Apache-2.0
// Connections that are half-open under the pool: an answer that never comes ends as "the database does not answer", and the
// pool goes on with new connections.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openDatabase } from "../../src/db/pool.ts";
import { systemClock } from "../../src/std/clock.ts";
import { silentLog } from "../../src/std/log.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createTestDatabase } from "../kit/database.ts";
import { startDatabaseProxy } from "../kit/database-proxy.ts";

test("a pool whose connections are all half-open says so and serves again", async (t) => {
  const { controller } = await createTestDatabase(t);
  const proxy = await startDatabaseProxy(t, controller);
  const options = { log: silentLog, clock: systemClock, random: systemRandom };
  const connection = proxy.through(controller);
  const db = cleanupOf(t).use(openDatabase({ ...options, connection, poolSize: 3, answerWithinMs: 1_000 }));
  const look = () => db.service((tx) => tx.one("select 1", []));
  const all = () => Promise.allSettled([look(), look(), look()]);
  await all();
  assert.equal(proxy.connections().length, 3);
  for (const one of proxy.connections()) one.freeze();
  for (const outcome of await all()) {
    assert.equal(outcome.status, "rejected");
    assert.equal((outcome.reason as { code: string }).code, "database_unavailable");
  }
  for (const outcome of await all()) assert.equal(outcome.status, "fulfilled");
});

test("a connection that freezes in the middle of a transaction fails it, and nothing of it is kept", async (t) => {
  const { controller } = await createTestDatabase(t);
  const proxy = await startDatabaseProxy(t, controller);
  const options = { log: silentLog, clock: systemClock, random: systemRandom };
  const connection = proxy.through(controller);
  const db = cleanupOf(t).use(openDatabase({ ...options, connection, poolSize: 1, answerWithinMs: 1_000 }));
  const failing = db.service(async (tx) => {
    await tx.query("insert into app.sweep (at) values ('epoch') on conflict do nothing", []);
    for (const one of proxy.connections()) one.freeze();
    await tx.query("select 1", []);
  });
  await assert.rejects(failing, { code: "database_unavailable" });
  for (const one of proxy.connections()) one.cut();
  const { count } = await db.service((tx) => tx.one<{ count: string }>("select count(*) from app.sweep", []));
  assert.equal(count, "0");
});
