// SPDX-License-Identifier: Apache-2.0
// Loads a backup into a new, empty database: its own migrations first, then all rows in one transaction, then the newer
// migrations. Nothing is taken on trust: what was loaded is counted, and every foreign key is looked at.

import fs from "node:fs";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import pg from "pg";
import { from } from "pg-copy-streams";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { brokenReferences, listTables } from "./app-tables.ts";
import { nameOf, type Progress, SESSION } from "./backup.ts";
import { type BackupTable, checkFile, damaged, type Manifest, readManifest } from "./backup-format.ts";
import { Counter } from "./counted.ts";
import { migrate, type Migration } from "./migrate.ts";
import { type ConnectionOptions, translate } from "./pool.ts";

export type RestoreOptions = {
  readonly directory: string;
  readonly migrations: readonly Migration[];
  readonly progress: Progress;
  readonly signal: AbortSignal;
};

/** Reads the whole backup and says what is wrong with it, before anything is made of it. */
export async function verifyBackup(options: RestoreOptions): Promise<Manifest> {
  const { directory, migrations, progress, signal } = options;
  const manifest = readManifest(directory);
  checkMigrations(manifest, migrations);
  for (const table of manifest.tables) {
    progress(table.name, 0);
    await checkFile({ directory, table, signal });
  }
  return manifest;
}

/** A backup can be loaded by whoever has every migration that it has, unchanged. */
function checkMigrations(manifest: Manifest, migrations: readonly Migration[]): void {
  manifest.migrations.forEach(({ number, name, sha256 }, index) => {
    const own = migrations[index];
    if (own === undefined)
      throw new Failure(
        "backup_newer",
        `the backup has migration ${name}, which this program does not know: update this Holdfast (Holdfast ${manifest.holdfast} wrote the backup)`,
      );
    if (own.number !== number || own.sha256 !== sha256)
      throw new Failure(
        "migration_changed",
        `${name} of the backup is not the ${own.name} that this Holdfast brings: restore it with the Holdfast ${manifest.holdfast} that wrote it`,
      );
  });
}

/** Returns the names of the newer migrations, applied after the load. */
export async function loadBackup(
  owner: ConnectionOptions,
  manifest: Manifest,
  options: RestoreOptions,
): Promise<readonly string[]> {
  await migrate(owner, options.migrations.slice(0, manifest.migrations.length));
  await withOwner(owner, (client) => loadTables(client, manifest, options));
  return migrate(owner, options.migrations);
}

/** So that the first queries on the new database are planned on what is in it. */
export async function analyze(owner: ConnectionOptions): Promise<void> {
  await withOwner(owner, (client) => client.query("analyze"));
}

async function loadTables(client: pg.Client, manifest: Manifest, options: RestoreOptions): Promise<void> {
  await client.query(SESSION);
  checkTables(await listTables(client), manifest.tables);
  await client.query("begin");
  // No trigger fires, so the order of the tables does not matter; what foreign keys demand is looked at below.
  await client.query("set local session_replication_role = replica");
  const names = manifest.tables.map(({ name }) => `app.${pg.escapeIdentifier(name)}`);
  await client.query(`truncate ${names.join(", ")}`);
  for (const table of manifest.tables) await loadTable(client, table, options);
  const broken = await brokenReferences(client);
  if (broken.length > 0) throw damaged(`the backup contradicts itself: ${broken.join("; ")}`);
  await client.query("commit");
}

function checkTables(made: readonly Pick<BackupTable, "name" | "columns">[], given: readonly BackupTable[]): void {
  const textOf = (tables: typeof made): string[] =>
    tables.map(({ name, columns }) => `${name} (${columns.toSorted().join(", ")})`).toSorted();
  const [wanted, found] = [textOf(made), textOf(given)];
  const odd = [...wanted.filter((text) => !found.includes(text)), ...found.filter((text) => !wanted.includes(text))];
  if (odd.length > 0)
    throw damaged(`the tables of the backup are not those that its migrations make: ${odd.join("; ")}`);
}

async function loadTable(client: pg.Client, table: BackupTable, options: RestoreOptions): Promise<void> {
  const { directory, progress, signal } = options;
  let done = 0;
  progress(table.name, 0);
  try {
    await pipeline(
      fs.createReadStream(path.join(directory, table.file)),
      createGunzip(),
      new Counter((bytes) => progress(table.name, (done += bytes))),
      client.query(from(`copy ${nameOf(table)} from stdin`)),
      { signal },
    );
  } catch (error) {
    // Class 22 and 23: a value or a row that the table does not take.
    if (/^2[23]/.test(codeOf(error)))
      throw damaged(`${table.file} does not fit into app.${table.name}: ${messageOf(error)}`, error);
    throw error;
  }
  const { rows } = await client.query<{ count: string }>(`select count(*) from app.${pg.escapeIdentifier(table.name)}`);
  if (rows[0]?.count !== String(table.rows))
    throw damaged(`app.${table.name} has ${rows[0]?.count} rows after the load, and ${table.rows} were written`);
}

async function withOwner<Result>(
  owner: ConnectionOptions,
  body: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ ...owner, application_name: "holdfast restore" });
  client.on("error", () => {});
  try {
    await client.connect();
    return await body(client);
  } catch (error) {
    if (["53100", "58030"].includes(codeOf(error)) && /No space left/.test(messageOf(error)))
      throw new Failure("disk_full", `no space is left to restore: ${messageOf(error)}`, { cause: error });
    throw translate(error);
  } finally {
    await client.end().catch(() => {});
  }
}
