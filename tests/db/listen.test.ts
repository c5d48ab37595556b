// SPDX-License-Identifier: Apache-2.0
// A listener hears what is notified, comes back after its connection was lost and says so, and ends when it is asked to.

import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { listen } from "../../src/db/listen.ts";
import { systemClock } from "../../src/std/clock.ts";
import { silentLog } from "../../src/std/log.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createTestDatabase } from "../kit/database.ts";

async function open(t: TestContext) {
  const { controller, owner: connection } = await createTestDatabase(t);
  const owner = new pg.Client(connection);
  await owner.connect();
  cleanupOf(t).defer(() => owner.end());
  const events = new EventEmitter();
  const listening = once(events, "listening");
  const listener = listen({
    connection: controller,
    channels: ["work", "odd Name"],
    onNotification: (channel, payload) => events.emit("notification", channel, payload),
    onListening: () => events.emit("listening"),
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  cleanupOf(t).use(listener);
  await listening;
  return { owner, events, listener };
}

const listeners =
  "select pid from pg_stat_activity where datname = current_database() and application_name = 'holdfast listen'";

test("what is notified arrives with its channel and payload, whatever the channel's name", async (t) => {
  const { owner, events } = await open(t);
  for (const channel of ["work", "odd Name"]) {
    const heard = once(events, "notification");
    await owner.query("select pg_notify($1, 'org_a')", [channel]);
    assert.deepEqual(await heard, [channel, "org_a"]);
  }
});

test("a listener whose connection is lost listens again, says so, and hears what follows", async (t) => {
  const { owner, events } = await open(t);
  for (let round = 0; round < 3; round++) {
    const again = once(events, "listening");
    const { rows } = await owner.query<{ pid: number }>(listeners);
    assert.equal(rows.length, 1);
    await owner.query("select pg_terminate_backend($1, 5000)", [rows[0]?.pid]);
    await again;
    const heard = once(events, "notification");
    await owner.query("notify work, 'again'");
    assert.deepEqual(await heard, ["work", "again"]);
  }
});

test("disposal is idempotent, ends a listener that never reached its database, and says nothing afterwards", async (t) => {
  const { events, listener } = await open(t);
  await Promise.all([listener[Symbol.asyncDispose](), listener[Symbol.asyncDispose]()]);
  assert.equal(events.emit("listening"), false);
  const unreachable = listen({
    connection: { host: "/nonexistent", user: "x", database: "x" },
    channels: ["work"],
    onNotification: () => assert.fail("nothing can be heard"),
    onListening: () => assert.fail("nothing is listened to"),
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  await unreachable[Symbol.asyncDispose]();
});
