// SPDX-License-Identifier: Apache-2.0
// A transaction is what its role and organisation say, ends as one whole, and never says committed when it is not.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { checkLogin, openDatabase } from "../../src/db/pool.ts";
import { systemClock } from "../../src/std/clock.ts";
import { silentLog } from "../../src/std/log.ts";
import { systemRandom } from "../../src/std/random.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createTestDatabase } from "../kit/database.ts";

async function open(t: TestContext, poolSize = 1) {
  const database = await createTestDatabase(t);
  const options = { log: silentLog, clock: systemClock, random: systemRandom, poolSize };
  const db = cleanupOf(t).use(openDatabase({ connection: database.controller, ...options }));
  const owner = new pg.Client(database.owner);
  await owner.connect();
  cleanupOf(t).defer(() => owner.end());
  return { db, owner, database };
}

const who =
  "select current_user as role, app.current_organisation() as organisation, app.has_scope('fleet:read') as can";

test("role, organisation and scopes are those of the transaction, and nothing of them is left for the next one", async (t) => {
  const { db } = await open(t);
  const mine = await db.tenant({ organisationId: "org_a", scopes: ["fleet:read"] }, (tx) => tx.one(who, []));
  assert.deepEqual(mine, { role: "holdfast_tenant", organisation: "org_a", can: true });
  const next = await db.tenant({ organisationId: "org_b", scopes: [] }, (tx) => tx.one(who, []));
  assert.deepEqual(next, { role: "holdfast_tenant", organisation: "org_b", can: false });
  assert.deepEqual(await db.service((tx) => tx.one(who, [])), {
    role: "holdfast_service",
    organisation: null,
    can: false,
  });
});

const organisation =
  "insert into app.lane (organisation_id, id, key, requirement) values ('org_a', $1::text, sha256(convert_to($1::text, 'UTF8')), '{}')";

test("a query that fails without being awaited fails the transaction, and nothing of it stays", async (t) => {
  const { db, owner } = await open(t);
  await owner.query("insert into app.organisation (id, name) values ('org_a', 'a')");
  const body = db.tenant({ organisationId: "org_a", scopes: [] }, async (tx) => {
    await tx.query(organisation, ["lane_1"]);
    void tx.query("select 1 / 0", []);
  });
  await assert.rejects(body, { code: "22012" });
  assert.equal((await owner.query("select from app.lane")).rowCount, 0);
  await db.tenant({ organisationId: "org_a", scopes: [] }, (tx) => tx.query(organisation, ["lane_2"]));
  assert.equal((await owner.query("select from app.lane")).rowCount, 1);
});

test("an error that the body swallows is never reported as committed", async (t) => {
  const { db, owner } = await open(t);
  await owner.query("insert into app.organisation (id, name) values ('org_a', 'a')");
  const body = db.tenant({ organisationId: "org_a", scopes: [] }, async (tx) => {
    await tx.query(organisation, ["lane_1"]);
    await tx.query("select 1 / 0", []).catch(() => {});
  });
  await assert.rejects(body);
  assert.equal((await owner.query("select from app.lane")).rowCount, 0);
});

test("a connection that is lost in the middle is database_unavailable, and the pool goes on with another", async (t) => {
  const { db, owner } = await open(t);
  const body = db.service(async (tx) => {
    const { pid } = await tx.one<{ pid: number }>("select pg_backend_pid() as pid", []);
    await owner.query("select pg_terminate_backend($1)", [pid]);
    await tx.query("select 1", []);
  });
  await assert.rejects(body, { code: "database_unavailable" });
  assert.deepEqual(await db.service((tx) => tx.one("select 1 as one", [])), { one: 1 });
});

test("a deadlock is tried again and reaches nobody", async (t) => {
  const { db, owner } = await open(t, 4);
  await owner.query("insert into app.organisation (id, name) values ('org_a', 'a')");
  const tenant = { organisationId: "org_a", scopes: [] };
  await db.tenant(tenant, (tx) =>
    Promise.all([tx.query(organisation, ["lane_1"]), tx.query(organisation, ["lane_2"])]),
  );
  const met = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const update = "update app.lane set blocked = 'x' where id = $1";
  const cross = (own: string, other: string, index: number) =>
    db.tenant(tenant, async (tx) => {
      await tx.query(update, [own]);
      met[index]?.resolve();
      await Promise.all(met.map(({ promise }) => promise));
      await tx.query(update, [other]);
    });
  await Promise.all([cross("lane_1", "lane_2", 0), cross("lane_2", "lane_1", 1)]);
});

test("a table that gains a column under a prepared statement disturbs no request", async (t) => {
  const { db, owner } = await open(t);
  const look = () => db.service((tx) => tx.query("select * from app.sweep", []));
  await look();
  await owner.query("alter table app.sweep add column later integer");
  await look();
});

test("a login that owns the tables or bypasses row-level security is told so; one that lacks the roles is refused", async (t) => {
  const { database, owner } = await open(t);
  assert.deepEqual(await checkLogin(database.controller), []);
  assert.match((await checkLogin(database.owner))[0] ?? "", /bypasses row-level security/);
  const role = `test_lacking_${process.pid}`;
  await owner.query(`create role ${role} login`);
  cleanupOf(t).defer(async () => void (await owner.query(`drop role ${role}`)));
  await assert.rejects(checkLogin({ ...database.controller, user: role }), { code: "database_rights" });
});
