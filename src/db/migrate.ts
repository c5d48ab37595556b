// SPDX-License-Identifier: Apache-2.0
// Applies numbered SQL files, forward only: a transaction for each, under one advisory lock, so that any number of programs
// may start at once. An applied file never changes (sha256), and a newer schema is never touched by an older program (P13).

import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import pg from "pg";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { type ConnectionOptions, translate } from "./pool.ts";

/** Any constant of our own; see pg_advisory_lock. */
const LOCK = 4_711_074_400;
const OLDEST_SERVER = 150_000;

export type Migration = {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly sha256: string;
};

/** Reads NNNN_name.sql files, in order; a gap or a double number is a bug of this program. */
export function readMigrations(directory: string): readonly Migration[] {
  const files = fs
    .readdirSync(directory)
    .filter((file) => file.endsWith(".sql") && file !== "schema.sql")
    .sort();
  return files.map((file, index) => {
    const number = Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)?.[1]);
    if (number !== index + 1) throw new Error(`bug: migrations are numbered 0001, 0002, …: ${file}`);
    const sql = fs.readFileSync(path.join(directory, file), "utf8");
    return { number, name: file, sql, sha256: createHash("sha256").update(sql).digest("hex") };
  });
}

export type MigrationStatus = {
  readonly applied: readonly { readonly number: number; readonly name: string; readonly appliedAt: string }[];
  readonly pending: readonly string[];
};

/** Applies what is missing; returns the names that it applied. */
export async function migrate(
  connection: ConnectionOptions,
  migrations: readonly Migration[],
): Promise<readonly string[]> {
  return withClient(connection, async (client) => {
    await checkServer(client);
    await client.query("select pg_advisory_lock($1)", [LOCK]);
    await client.query("create schema if not exists app");
    await client.query(
      "create table if not exists app.migration (number integer primary key, name text not null, sha256 text not null, applied_at timestamptz not null default now())",
    );
    const pending = checkApplied(await readApplied(client), migrations);
    for (const migration of pending) await apply(client, migration);
    return pending.map((migration) => migration.name);
  });
}

export async function migrationStatus(
  connection: ConnectionOptions,
  migrations: readonly Migration[],
): Promise<MigrationStatus> {
  return withClient(connection, async (client) => {
    await checkServer(client);
    const known = await client.query<{ known: boolean }>("select to_regclass('app.migration') is not null as known");
    const applied = known.rows[0]?.known === true ? await readApplied(client) : [];
    const pending = checkApplied(applied, migrations);
    return {
      applied: applied.map((row) => ({ number: row.number, name: row.name, appliedAt: row.applied_at.toISOString() })),
      pending: pending.map((migration) => migration.name),
    };
  });
}

/** Until this connection ends no migration runs; waits for one that does. */
export async function holdSchema(client: pg.Client): Promise<void> {
  await client.query("select pg_advisory_lock_shared($1)", [LOCK]);
}

type AppliedRow = {
  readonly number: number;
  readonly name: string;
  readonly sha256: string;
  readonly applied_at: Date;
};

export async function readApplied(client: pg.Client): Promise<readonly AppliedRow[]> {
  return (await client.query<AppliedRow>("select number, name, sha256, applied_at from app.migration order by number"))
    .rows;
}

/** What is still to be applied; a Failure when the database and this program do not belong together. */
function checkApplied(applied: readonly AppliedRow[], migrations: readonly Migration[]): readonly Migration[] {
  const newest = applied.at(-1);
  if (newest !== undefined && newest.number > migrations.length) {
    throw new Failure(
      "schema_newer",
      `the database has migration ${newest.name}, which this program does not know: update holdfast on this machine`,
    );
  }
  for (const row of applied) {
    const migration = migrations[row.number - 1];
    if (migration?.sha256 !== row.sha256) {
      throw new Failure(
        "migration_changed",
        `${migration?.name ?? row.name} is not what was applied on ${row.applied_at.toISOString()}: applied migrations never change`,
      );
    }
  }
  return migrations.slice(applied.length);
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  try {
    await client.query("begin");
    await client.query(migration.sql);
    await client.query("insert into app.migration (number, name, sha256) values ($1, $2, $3)", [
      migration.number,
      migration.name,
      migration.sha256,
    ]);
    await client.query("commit");
  } catch (error) {
    if (codeOf(error) === "42501")
      throw new Failure("database_rights", `${migration.name}: ${messageOf(error)}`, { cause: error });
    throw new Error(`migration ${migration.name} failed`, { cause: error });
  }
}

async function checkServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: number; text: string }>(
    "select current_setting('server_version_num')::int as version, current_setting('server_version') as text",
  );
  const version = rows[0]?.version ?? 0;
  if (version < OLDEST_SERVER)
    throw new Failure("database_too_old", `PostgreSQL ${rows[0]?.text} is too old: 15 or newer is needed`);
}

async function withClient<Result>(
  connection: ConnectionOptions,
  body: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({
    ...connection,
    application_name: "holdfast migrate",
    connectionTimeoutMillis: 10_000,
  });
  // A connection that is lost meanwhile rejects the running query too.
  client.on("error", () => {});
  try {
    await client.connect();
    return await body(client);
  } catch (error) {
    if (codeOf(error) === "42501") throw new Failure("database_rights", messageOf(error), { cause: error });
    throw translate(error);
  } finally {
    await client.end().catch(() => {});
  }
}
