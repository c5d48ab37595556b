// SPDX-License-Identifier: Apache-2.0
// The end of a transaction: nothing is sent after it, the first fault is the one that is told, and a retry reaches a clean connection.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { migrate } from "../../src/db/migrate.ts";
import { checkLogin, openDatabase, type Tx } from "../../src/db/pool.ts";
import { systemClock } from "../../src/std/clock.ts";
import { silentLog } from "../../src/std/log.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createTestDatabase, migrations } from "../kit/database.ts";

async function open(t: TestContext, poolSize = 1) {
  const database = await createTestDatabase(t);
  const options = { log: silentLog, clock: systemClock, random: systemRandom, poolSize };
  const db = cleanupOf(t).use(openDatabase({ connection: database.controller, ...options }));
  const owner = new pg.Client(database.owner);
  await owner.connect();
  cleanupOf(t).defer(() => owner.end());
  return { db, owner, database, options };
}

const first = { organisationId: "org_a", scopes: [] };
const second = { organisationId: "org_b", scopes: [] };

test("P5: a transaction that has ended sends nothing into the next one of its connection", async (t) => {
  const { db } = await open(t);
  let kept: Tx | undefined;
  await db.tenant(first, async (tx) => {
    kept = tx;
    await tx.query("select 1", []);
  });
  await db.tenant(second, async (tx) => {
    await tx.query("select 1", []);
    await assert.rejects(
      async () => await kept?.one("select app.current_organisation()", []),
      /transaction ha[ds] ended/,
    );
  });
});

test("a chain of queries that the body did not wait for is not sent after the commit, where it would have no role", async (t) => {
  const { db } = await open(t);
  let late: Promise<unknown> | undefined;
  await db.tenant(first, (tx) => {
    late = assert.rejects(
      tx.query("select 1", []).then(() => tx.query("select 2", [])),
      /transaction ha[ds] ended/,
    );
    return Promise.resolve();
  });
  await late;
});

test("a missing row that the body did not wait for fails the transaction", async (t) => {
  const { db } = await open(t);
  const body = db.service((tx) => {
    void tx.one("select 1 where false", []);
    return Promise.resolve();
  });
  await assert.rejects(body, /expected one row, got none/);
});

test("the first fault is told, not that the transaction is aborted; and it decides whether to try again", async (t) => {
  const { db } = await open(t);
  const failing = db.service(async (tx) => {
    void tx.query("select 1 / 0", []);
    await tx.query("select 1", []);
  });
  await assert.rejects(failing, { code: "22012" });
  let tries = 0;
  await db.service(async (tx) => {
    if (++tries === 1) void tx.query("do $$ begin raise exception using errcode = '40001'; end $$", []);
    await tx.query("select 1", []);
  });
  assert.equal(tries, 2);
});

test("plans that a migration outdated on every connection of the pool reach nobody", async (t) => {
  const { db, owner } = await open(t, 8);
  const look = () =>
    db.service(async (tx) => {
      await tx.query("select * from app.sweep", []);
    });
  const met = Promise.withResolvers<void>();
  let there = 0;
  const warm = () =>
    db.service(async (tx) => {
      await tx.query("select * from app.sweep", []);
      if (++there === 8) met.resolve();
      await met.promise;
    });
  await Promise.all(Array.from({ length: 8 }, warm));
  await owner.query("alter table app.sweep add column later integer");
  await look();
});

test("a file that the body misses is not a database that does not answer", async (t) => {
  const { db } = await open(t);
  await assert.rejects(
    db.service(() => fs.readFile("/nonexistent")),
    { code: "ENOENT" },
  );
});

test("a login with roles that it may not set is refused at the start; without that check the reason is told", async (t) => {
  const { database, owner, options } = await open(t);
  const role = `test_unset_${process.pid}`;
  await owner.query(`create role ${role} login`);
  cleanupOf(t).defer(async () => void (await owner.query(`drop owned by ${role}; drop role ${role}`)));
  await owner.query(`grant holdfast_tenant, holdfast_service to ${role} with inherit false, set false`);
  const connection = { ...database.controller, user: role };
  await assert.rejects(checkLogin(connection), { code: "database_rights" });
  await using db = openDatabase({ ...options, connection });
  await assert.rejects(
    db.tenant(first, (tx) => tx.query("select 1", [])),
    { code: "42501" },
  );
});

test("a database or a role that does not exist is named by a code, not by a stack trace", async (t) => {
  const { database } = await open(t);
  for (const wrong of [{ database: "test_nowhere" }, { user: "test_nobody" }])
    await assert.rejects(migrate({ ...database.owner, ...wrong }, migrations), { code: "database_unavailable" });
});

test("disposal is idempotent", async (t) => {
  const { db } = await open(t);
  await Promise.all([db[Symbol.asyncDispose](), db[Symbol.asyncDispose]()]);
});
