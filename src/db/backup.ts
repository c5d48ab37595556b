// SPDX-License-Identifier: Apache-2.0
// Writes a backup: every table of schema app through COPY, in one transaction that sees one moment. Beside its place and
// renamed when all of it is on the disk: a directory of that name is a whole backup, or there is none.

import fs from "node:fs";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import pg from "pg";
import { to } from "pg-copy-streams";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { syncDirectory } from "../std/files.ts";
import { type AppTable, listTables } from "./app-tables.ts";
import { type BackupTable, FORMAT, type Manifest, MANIFEST, manifestText } from "./backup-format.ts";
import { Counter } from "./counted.ts";
import { holdSchema, type Migration, migrationStatus, readApplied } from "./migrate.ts";
import { type ConnectionOptions, translate } from "./pool.ts";

export type BackupOptions = {
  /** Made; an empty one may be there. */
  readonly directory: string;
  /** Of this program, for backup.json. */
  readonly version: string;
  /** What this program knows: a newer schema is not its to read. */
  readonly migrations: readonly Migration[];
  readonly progress: Progress;
  readonly signal: AbortSignal;
};

/** Called again and again with a table and the bytes of it that have gone through so far. */
export type Progress = (table: string, bytes: number) => void;

/** The fastest level still takes logs to a fifth; see docs/decisions/0009-backup.md. */
const GZIP_LEVEL = 1;

export async function writeBackup(connection: ConnectionOptions, options: BackupOptions): Promise<Manifest> {
  const directory = checkPlace(options.directory);
  const partial = `${directory}.partial-${process.pid}`;
  const { applied } = await migrationStatus(connection, options.migrations);
  if (applied.length === 0) throw new Failure("database_missing", "the database holds nothing of Holdfast");
  try {
    fs.rmSync(partial, { recursive: true, force: true });
    fs.mkdirSync(partial, { mode: 0o700 });
    fs.chmodSync(partial, 0o700);
    const manifest = await readAll(connection, partial, options);
    await writeManifest(path.join(partial, MANIFEST), manifest);
    syncDirectory(partial);
    fs.renameSync(partial, directory);
    syncDirectory(path.dirname(directory));
    return manifest;
  } catch (error) {
    fs.rmSync(partial, { recursive: true, force: true });
    options.signal.throwIfAborted();
    throw placeFailure(directory, error);
  }
}

/** Refuses a place where there is something, before anything is read; returns it without symbolic links. */
export function checkPlace(given: string): string {
  try {
    const parent = path.dirname(path.resolve(given));
    if (!fs.existsSync(parent))
      throw new Failure("backup_place", `there is no directory ${parent}: is the disk for backups mounted?`);
    if (!fs.existsSync(given)) return path.join(fs.realpathSync(parent), path.basename(path.resolve(given)));
    const directory = fs.realpathSync(given);
    if (!fs.statSync(directory).isDirectory()) throw new Failure("backup_exists", `${given} is a file`);
    if (fs.readdirSync(directory).length > 0)
      throw new Failure("backup_exists", `${given} is not empty, and a backup does not overwrite anything`);
    if (fs.statSync(directory).dev !== fs.statSync(path.dirname(directory)).dev)
      throw new Failure("backup_place", `${given} is where a disk is mounted: name a directory below it`);
    return directory;
  } catch (error) {
    throw placeFailure(given, error);
  }
}

function placeFailure(place: string, error: unknown): unknown {
  const code = codeOf(error);
  if (code === "ENOSPC" || code === "EDQUOT")
    return new Failure("disk_full", `no space is left for the backup ${place}: nothing was written`, { cause: error });
  if (/^E[A-Z0-9]+$/.test(code) && error instanceof Error && "syscall" in error && "path" in error)
    return new Failure("backup_place", `the backup ${place} cannot be written: ${messageOf(error)}`, { cause: error });
  return translate(error);
}

/** So that COPY says the same whatever the server's and the role's defaults are, and is not cut off by a time limit. */
export const SESSION = `
set client_encoding = 'UTF8'; set datestyle = 'ISO, YMD'; set intervalstyle = 'postgres'; set timezone = 'UTC';
set bytea_output = 'hex'; set extra_float_digits = 1; set lock_timeout = 0; set statement_timeout = 0;
set idle_in_transaction_session_timeout = 0; set search_path = pg_catalog`;

async function readAll(connection: ConnectionOptions, partial: string, options: BackupOptions): Promise<Manifest> {
  const client = new pg.Client({ ...connection, application_name: "holdfast backup", connectionTimeoutMillis: 10_000 });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query(SESSION);
    // A migration must not run meanwhile: what rewrites a table is seen by older snapshots too.
    await holdSchema(client);
    await client.query("begin transaction isolation level repeatable read read only");
    // Rather an error than a backup without the rows that this role may not see.
    await client.query("set local row_security = off");
    const { rows } = await client.query<{ now: Date; version: string }>(
      "select now(), current_setting('server_version') as version",
    );
    const migrations = (await readApplied(client)).map(({ number, name, sha256 }) => ({ number, name, sha256 }));
    const tables: BackupTable[] = [];
    for (const table of await listTables(client)) tables.push(await writeTable(client, table, { partial, ...options }));
    await client.query("commit");
    const takenAt = (rows[0]?.now ?? new Date(0)).toISOString();
    const server = rows[0]?.version ?? "unknown";
    return { format: FORMAT, holdfast: options.version, server, takenAt, migrations, tables };
  } catch (error) {
    throw rightsFailure(error);
  } finally {
    // In the middle of a COPY this closes the socket, and the server ends it.
    await client.end().catch(() => {});
  }
}

function rightsFailure(error: unknown): unknown {
  if (codeOf(error) !== "42501") return error;
  const message = `${messageOf(error)}: a backup needs a role that reads every row, a superuser or one with BYPASSRLS`;
  return new Failure("database_rights", message, { cause: error });
}

type TableOptions = Pick<BackupOptions, "progress" | "signal"> & { readonly partial: string };

async function writeTable(client: pg.Client, table: AppTable, options: TableOptions): Promise<BackupTable> {
  const { partial, progress, signal } = options;
  const file = `${table.name}.copy.gz`;
  let done = 0;
  const unpacked = new Counter((bytes) => progress(table.name, (done += bytes)));
  const packed = new Counter();
  const output = fs.createWriteStream(path.join(partial, file), { mode: 0o600, flags: "wx", flush: true });
  progress(table.name, 0);
  await pipeline(
    client.query(to(`copy ${nameOf(table)} to stdout`)),
    unpacked,
    createGzip({ level: GZIP_LEVEL }),
    packed,
    output,
    { signal },
  );
  return {
    ...table,
    file,
    rows: unpacked.newlines,
    bytes: packed.sizeBytes,
    sha256: packed.sha256(),
  };
}

/** app.job (organisation_id, id, …), as COPY takes it. */
export function nameOf({ name, columns }: Pick<AppTable, "name" | "columns">): string {
  return `app.${pg.escapeIdentifier(name)} (${columns.map((column) => pg.escapeIdentifier(column)).join(", ")})`;
}

async function writeManifest(file: string, manifest: Manifest): Promise<void> {
  await using handle = await fs.promises.open(file, "wx", 0o600);
  await handle.writeFile(manifestText(manifest));
  await handle.sync();
}
