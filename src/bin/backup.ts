// SPDX-License-Identifier: Apache-2.0
// `holdfast backup` and `holdfast restore`: finds the database, or makes one, and puts the parts together.

import path from "node:path";
import pg from "pg";
import type { BackupSummary, RestoreSummary } from "../cli/programs.ts";
import type { OwnerQuery } from "../controller/first-run.ts";
import { markRestored, type Restored } from "../controller/restored.ts";
import { checkPlace, type Progress, writeBackup } from "../db/backup.ts";
import type { Manifest } from "../db/backup-format.ts";
import { connectionsTo } from "../db/cluster.ts";
import {
  checkEmpty,
  createFilled,
  databaseLockFile,
  databaseOf,
  hasDatabase,
  noDatabase,
  rootInUse,
  startAsWritten,
} from "../db/embedded.ts";
import type { ConnectionOptions } from "../db/pool.ts";
import { analyze, loadBackup, verifyBackup } from "../db/restore.ts";
import { systemClock } from "../std/clock.ts";
import { Failure } from "../std/errors.ts";
import { fileFailure } from "../std/files.ts";
import { idMaker } from "../std/ids.ts";
import { lockHolder } from "../std/lock.ts";
import { systemRandom } from "../std/random.ts";
import { connectionsFrom, lateLog, migrations } from "./database.ts";
import { type Environment, rootFrom } from "./settings.ts";
import { VERSION } from "./version.ts";

export type BackupCommand = { readonly directory: string; readonly root?: string; readonly progress: Progress };

/** Undefined when the signal came first; then nothing was written. */
export async function backup(
  { directory, root, progress }: BackupCommand,
  env: Environment,
  signal: AbortSignal,
): Promise<BackupSummary | undefined> {
  const began = systemClock.monotonicMs();
  return unlessAborted(signal, async () => {
    checkPlace(directory);
    await using stack = new AsyncDisposableStack();
    const owner = isExternal(env, root) ? connectionsFrom(env).owner : await embeddedOwner(rootFrom(env, root), stack);
    const manifest = await writeBackup(owner, { directory, version: VERSION, migrations, progress, signal });
    return summaryOf(path.resolve(directory), manifest, systemClock.monotonicMs() - began);
  });
}

/** --root names the embedded one, whatever else is set. */
function isExternal(env: Environment, root: string | undefined): boolean {
  return root === undefined && (env["DATABASE_URL"] ?? env["DATABASE_OWNER_URL"] ?? "") !== "";
}

/** The server that runs, by its socket; else one for as long as this takes. */
async function embeddedOwner(root: string, stack: AsyncDisposableStack): Promise<ConnectionOptions> {
  const holder = holderOf(root);
  if (!hasDatabase(root)) throw holder === undefined ? noDatabase(root) : rootInUse(root, holder);
  if (holder !== undefined) return connectionsTo(databaseOf(root)).owner;
  return stack.use(await startAsWritten({ root, log: lateLog(path.join(root, "controller.log")) })).owner;
}

function holderOf(root: string): string | undefined {
  try {
    return lockHolder(databaseLockFile(root));
  } catch (error) {
    throw fileFailure(root, error);
  }
}

function summaryOf(directory: string, manifest: Manifest, tookMs: number): BackupSummary {
  const { format, holdfast, server, takenAt, tables } = manifest;
  const sum = (key: "rows" | "bytes"): number => tables.reduce((total, table) => total + table[key], 0);
  return {
    directory,
    format,
    holdfast,
    server,
    takenAt,
    migrations: manifest.migrations.map(({ name }) => name),
    tables: tables.map(({ name, rows, bytes }) => ({ name, rows, bytes })),
    rows: sum("rows"),
    bytes: sum("bytes"),
    tookMs: Math.round(tookMs),
  };
}

/** Undefined when the signal came first; then the root has no database, as before. */
export async function restore(
  { directory, root: given, progress }: BackupCommand,
  env: Environment,
  signal: AbortSignal,
): Promise<RestoreSummary | undefined> {
  const began = systemClock.monotonicMs();
  if (isExternal(env, given))
    throw new Failure("config_invalid", "a restore makes an embedded database, and DATABASE_URL names another one", {
      details: [{ place: "DATABASE_URL", problem: "unset it, or say --root to mean the embedded one" }],
    });
  const root = rootFrom(env, given);
  return unlessAborted(signal, async () => {
    const holder = holderOf(root);
    if (holder !== undefined) throw rootInUse(root, holder);
    checkEmpty(root);
    const options = { directory, migrations, progress, signal };
    const manifest = await verifyBackup(options);
    let migrated: readonly string[] = [];
    let restored: Restored = { jobs: 0, returned: 0, cancelled: 0 };
    const fill = async (owner: ConnectionOptions): Promise<void> => {
      migrated = await loadBackup(owner, manifest, options);
      restored = await mark(owner, path.resolve(directory), manifest);
      await analyze(owner);
      signal.throwIfAborted();
    };
    await createFilled({ root, log: lateLog(path.join(root, "controller.log")), fill });
    const backup = summaryOf(path.resolve(directory), manifest, systemClock.monotonicMs() - began);
    return { ...backup, root, migrated, ...restored };
  });
}

async function mark(owner: ConnectionOptions, directory: string, manifest: Manifest): Promise<Restored> {
  const client = new pg.Client(owner);
  client.on("error", () => {});
  await client.connect();
  try {
    const query: OwnerQuery = async <Row>(sql: string, params: readonly unknown[]) =>
      (await client.query(sql, [...params])).rows as Row[];
    await query("begin", []);
    const restored = await markRestored(query, {
      ids: idMaker(systemClock, systemRandom),
      now: systemClock.now(),
      takenAt: Date.parse(manifest.takenAt),
      data: { directory, takenAt: manifest.takenAt, holdfast: manifest.holdfast, server: manifest.server },
    });
    await query("commit", []);
    return restored;
  } finally {
    await client.end();
  }
}

async function unlessAborted<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}
