// SPDX-License-Identifier: Apache-2.0
// Real PostgreSQL for tests: one embedded server for a whole run (the runner starts it and passes it by environment), one
// migrated template, cloned for each test. A person who runs one file gets a server of that file's own.

import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { startEmbedded } from "../../src/db/embedded.ts";
import { migrate, readMigrations } from "../../src/db/migrate.ts";
import type { ConnectionOptions } from "../../src/db/pool.ts";
import { silentLog } from "../../src/std/log.ts";
import { cleanupOf, type Ending } from "./cleanup.ts";

const VARIABLE = "HOLDFAST_TEST_DATABASE";
const migrationsDirectory = fileURLToPath(new URL("../../migrations", import.meta.url));
export const migrations = readMigrations(migrationsDirectory);

export type TestDatabase = { readonly owner: ConnectionOptions; readonly controller: ConnectionOptions };
export type TestServer = AsyncDisposable & { readonly env: Record<string, string>; readonly socketDirectory: string };

/** One server without durability, in a directory of its own that is removed afterwards. */
export async function startTestServer(): Promise<TestServer> {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "holdfast-test-"));
  fs.chmodSync(root, 0o755);
  const server = await startEmbedded({ root, log: silentLog, durable: false });
  const socketDirectory = String(server.owner.host);
  return {
    env: { [VARIABLE]: socketDirectory },
    socketDirectory,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      fs.rmSync(root, { recursive: true, force: true });
    },
  };
}

let own: Promise<TestServer> | undefined;
after(async () => (await own)?.[Symbol.asyncDispose]());

async function socketDirectory(): Promise<string> {
  const given = process.env[VARIABLE];
  if (given !== undefined) return given;
  own ??= startTestServer();
  return (await own).socketDirectory;
}

const OWNER = "holdfast_owner";

/** A database with the newest schema for this test alone; dropped when the test ends. */
export async function createTestDatabase(t: Ending): Promise<TestDatabase> {
  const host = await socketDirectory();
  const template = await migratedTemplate(host);
  return createFrom(t, host, template);
}

/** An empty one, for tests of the migrations themselves. */
export async function createEmptyDatabase(t: Ending): Promise<TestDatabase> {
  return createFrom(t, await socketDirectory(), "template1");
}

let count = 0;

async function createFrom(t: Ending, host: string, template: string): Promise<TestDatabase> {
  const database = `test_${process.pid}_${++count}`;
  await administer(host, (client) => client.query(`create database ${database} template ${template}`));
  cleanupOf(t).defer(() =>
    administer(host, (client) => client.query(`drop database if exists ${database} with (force)`)),
  );
  return { owner: { host, user: OWNER, database }, controller: { host, user: "holdfast_controller", database } };
}

/** Test files run side by side: the first one makes the template, the others wait for its lock. */
async function migratedTemplate(host: string): Promise<string> {
  const digest = createHash("sha256")
    .update(migrations.map((migration) => migration.sha256).join())
    .digest("hex");
  const template = `template_${digest.slice(0, 16)}`;
  await administer(host, async (client) => {
    await client.query("select pg_advisory_lock(1)");
    const { rowCount } = await client.query("select from pg_database where datname = $1", [template]);
    if (rowCount === 1) return;
    // A test that was killed half-way must not take the template away from all others.
    await client.query(`drop database if exists ${template}_new with (force)`);
    await client.query(`create database ${template}_new`);
    await migrate({ host, user: OWNER, database: `${template}_new` }, migrations);
    await client.query(`alter database ${template}_new rename to ${template}`);
  });
  return template;
}

async function administer(host: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ host, user: OWNER, database: "postgres" });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
