// SPDX-License-Identifier: Apache-2.0
// A migration and the row that says it was applied are one transaction; those before it stay.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { type Migration, migrate, migrationStatus } from "../../src/db/migrate.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createTestDatabase, migrations } from "../kit/database.ts";

/** Applies one more migration, which must fail; returns whether its table is there and what counts as applied. */
async function failWith(t: TestContext, change: Partial<Migration>) {
  const { owner } = await createTestDatabase(t);
  const number = migrations.length + 1;
  const added = { number, name: "9999_half.sql", sql: "create table app.half (n int)", sha256: "0", ...change };
  await assert.rejects(migrate(owner, [...migrations, added]), /9999_half\.sql failed/);
  const client = new pg.Client(owner);
  await client.connect();
  cleanupOf(t).defer(() => client.end());
  const { rows } = await client.query<{ half: string | null }>("select to_regclass('app.half') as half");
  return { half: rows[0]?.half, applied: (await migrationStatus(owner, migrations)).applied.length };
}

test("a file that fails in the middle leaves nothing of itself, and is named", async (t) => {
  const seen = await failWith(t, { sql: "create table app.half (n int); select 1 / 0" });
  assert.deepEqual(seen, { half: null, applied: migrations.length });
});

test("a file whose row cannot be written leaves nothing either", async (t) => {
  assert.deepEqual(await failWith(t, { number: 1 }), { half: null, applied: migrations.length });
});
