// SPDX-License-Identifier: Apache-2.0
// Migrations: any number of programs at once, each file once, never a changed one, never a newer schema (P13).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { migrate, migrationStatus } from "../../src/db/migrate.ts";
import { cleanupOf } from "../kit/cleanup.ts";
import { createEmptyDatabase, createTestDatabase, migrations } from "../kit/database.ts";

test("8 programs on one empty database: each migration is applied once and none fails", async (t) => {
  const { owner } = await createEmptyDatabase(t);
  const applied = await Promise.all(Array.from({ length: 8 }, () => migrate(owner, migrations)));
  assert.deepEqual(
    applied.flat(),
    migrations.map((migration) => migration.name),
  );
  assert.deepEqual(await migrate(owner, migrations), []);
  assert.equal((await migrationStatus(owner, migrations)).applied.length, migrations.length);
});

test("a program that is killed in the middle leaves whole migrations, and the next one finishes", async (t) => {
  const { owner } = await createEmptyDatabase(t);
  const program = fileURLToPath(new URL("../kit/migrate-main.ts", import.meta.url));
  for (let round = 0; round < 5; round++) {
    const child = spawn(process.execPath, [program, JSON.stringify(owner)], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    const closed = once(child, "close");
    child.kill("SIGKILL");
    await closed;
    const { applied } = await migrationStatus(owner, migrations);
    assert.deepEqual(
      applied.map((row) => row.number),
      applied.map((_, index) => index + 1),
    );
  }
  await migrate(owner, migrations);
  assert.deepEqual((await migrationStatus(owner, migrations)).pending, []);
});

test("a file that was changed after it was applied is named and nothing is applied", async (t) => {
  const { owner } = await createTestDatabase(t);
  const changed = migrations.map((migration, index) =>
    index === 1 ? { ...migration, sha256: "0".repeat(64) } : migration,
  );
  await assert.rejects(migrate(owner, changed), (error: { code: string; message: string }) => {
    assert.equal(error.code, "migration_changed");
    assert.match(error.message, /0002_access\.sql/);
    return true;
  });
});

test("P13: a newer schema is never touched: it says which side to update", async (t) => {
  const { owner } = await createTestDatabase(t);
  await assert.rejects(migrate(owner, migrations.slice(0, 2)), (error: { code: string; message: string }) => {
    assert.equal(error.code, "schema_newer");
    assert.match(error.message, /update holdfast/);
    return true;
  });
});

test("an owner without the rights is told what was refused", async (t) => {
  const { owner } = await createEmptyDatabase(t);
  const admin = new pg.Client(owner);
  await admin.connect();
  cleanupOf(t).defer(() => admin.end());
  const role = `test_weak_${process.pid}`;
  await admin.query(`create role ${role} login`);
  cleanupOf(t).defer(async () => void (await admin.query(`drop role ${role}`)));
  await assert.rejects(migrate({ ...owner, user: role }, migrations), { code: "database_rights" });
});

test("a database that does not answer is unavailable, not a stack trace", async () => {
  await assert.rejects(migrate({ host: "/nonexistent", user: "x", database: "x" }, migrations), {
    code: "database_unavailable",
  });
});
