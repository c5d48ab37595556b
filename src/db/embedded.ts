// SPDX-License-Identifier: Apache-2.0
// The database of a root: a private real PostgreSQL in ROOT/database, a child of this process. Exclusive for the life of the
// process (flock). A server that a killed process left is proved to be ours and stopped first.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { systemClock } from "../std/clock.ts";
import { codeOf, Failure } from "../std/errors.ts";
import { makeDirectory, syncDirectory } from "../std/files.ts";
import { takeLock } from "../std/lock.ts";
import type { Log } from "../std/log.ts";
import {
  checkSocketPath,
  type Cluster,
  createCluster,
  isCluster,
  removePartials,
  type RunningCluster,
  startCluster,
  stopLeftover,
  syncCluster,
  writtenMajor,
} from "./cluster.ts";
import { type Account, checkReachable, databaseAccount, findBinaries, installBinaries } from "./embedded-files.ts";
import type { ConnectionOptions } from "./pool.ts";

export type EmbeddedOptions = {
  /** HOLDFAST_ROOT; made when missing. */
  readonly root: string;
  readonly log: Log;
  /** False gives up durability for speed: for tests only. */
  readonly durable?: boolean;
};

export type Embedded = RunningCluster;

/** Where the database of a root lies. */
export function databaseOf(root: string): string {
  return path.join(root, "database");
}

/** Where a restore makes the one to come. Short: a socket's path lies below it too. */
function restoringOf(root: string): string {
  return path.join(root, "restoring");
}

export function hasDatabase(root: string): boolean {
  return isCluster(databaseOf(root));
}

export function databaseLockFile(root: string): string {
  return path.join(root, "database.lock");
}

export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const dataDirectory = databaseOf(options.root);
  await using stack = new AsyncDisposableStack();
  const account = enterRoot(options.root, dataDirectory, stack);
  checkNoRestore(options.root);
  const binaries = installBinaries(options.root);
  await stopLeftover(dataDirectory, options.log);
  const cluster: Cluster = { ...options, binaries, dataDirectory, account };
  await createCluster(cluster);
  checkMajor(binaries, dataDirectory);
  return heldBy(stack, await startCluster(cluster));
}

/** Starts what is there, by the binaries of the major version that wrote it; makes no database and migrates none. */
export async function startAsWritten(options: EmbeddedOptions): Promise<Embedded> {
  checkOwner(options.root);
  const dataDirectory = databaseOf(options.root);
  await using stack = new AsyncDisposableStack();
  const account = enterRoot(options.root, dataDirectory, stack);
  if (!isCluster(dataDirectory)) throw noDatabase(options.root);
  const binaries = binariesFor(options.root, writtenMajor(dataDirectory));
  await stopLeftover(dataDirectory, options.log);
  return heldBy(stack, await startCluster({ ...options, binaries, dataDirectory, account }));
}

export function noDatabase(root: string): Failure {
  return new Failure("database_missing", `there is no database in ${root}`);
}

/** The server's life and the lock's are one. */
function heldBy(stack: AsyncDisposableStack, server: RunningCluster): Embedded {
  const running = stack.move();
  running.use(server);
  return { ...server, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** Makes the root and takes its lock, given back with the stack; returns the server's account. */
function enterRoot(root: string, dataDirectory: string, stack: AsyncDisposableStack): Account | undefined {
  checkSocketPath(dataDirectory);
  makeDirectory(root, 0o755);
  const account = databaseAccount();
  if (account !== undefined) checkReachable(root, account);
  stack.defer(lockRoot(root));
  return account;
}

function lockRoot(root: string): () => void {
  const note = `pid ${process.pid}, started ${new Date(systemClock.now()).toISOString()}`;
  const lock = takeLock(databaseLockFile(root), note);
  if (lock.kind === "taken") return lock.release;
  throw rootInUse(root, lock.holder);
}

export function rootInUse(root: string, holder: string): Failure {
  return new Failure(
    "root_in_use",
    `the database in ${root} is in use by ${holder === "" ? "another process" : holder}`,
  );
}

/** Where a restore was asked for, an empty database is not what anybody wants. */
function checkNoRestore(root: string): void {
  if (hasDatabase(root)) return;
  const begun = fs.readdirSync(root).find((name) => name.startsWith(path.basename(restoringOf(root))));
  if (begun === undefined) return;
  throw new Failure(
    "root_unusable",
    `a restore into ${root} was begun and not finished: run holdfast restore again, or delete ${path.join(root, begun)}`,
  );
}

function checkMajor(binaries: string, dataDirectory: string): void {
  const data = writtenMajor(dataDirectory);
  const program = path.basename(binaries).split(".")[0];
  if (data === program) return;
  throw new Failure(
    "database_major_mismatch",
    `the data in ${dataDirectory} was written by PostgreSQL ${data}, and this Holdfast brings PostgreSQL ${program}`,
  );
}

/** Ours when they fit, else those that an earlier Holdfast left in the root. */
function binariesFor(root: string, major: string): string {
  const binaries = installBinaries(root);
  if (path.basename(binaries).split(".")[0] === major) return binaries;
  const found = findBinaries(root, major);
  if (found !== undefined) return found;
  throw new Failure(
    "database_major_mismatch",
    `the data in ${databaseOf(root)} was written by PostgreSQL ${major}, of which no binaries are left in ${path.join(root, "postgres")}: run the backup with the Holdfast that wrote the data`,
  );
}

export type RestoreOptions = EmbeddedOptions & {
  /** Fills the new database; when it throws, the root stays without one. */
  readonly fill: (owner: ConnectionOptions) => Promise<void>;
};

/** Makes the database of a root that has none, whole or not at all, however this process ends. */
export async function createFilled(options: RestoreOptions): Promise<void> {
  const { root, log, fill } = options;
  checkOwner(root);
  const dataDirectory = restoringOf(root);
  await using stack = new AsyncDisposableStack();
  const account = enterRoot(root, dataDirectory, stack);
  checkEmpty(root);
  const binaries = installBinaries(root);
  await stopLeftover(dataDirectory, log);
  const remove = (): void => {
    fs.rmSync(dataDirectory, { recursive: true, force: true, maxRetries: 5 });
    removePartials(dataDirectory);
  };
  remove();
  // Nothing is lost when the power goes meanwhile: it is synced as a whole before it gets its name.
  const cluster: Cluster = { ...options, binaries, dataDirectory, account, durable: false };
  try {
    await createCluster(cluster);
    {
      await using server = await startCluster(cluster);
      await Promise.race([fill(server.owner), server.exited.then((why) => Promise.reject(serverEnded(why)))]);
    }
    await syncCluster(cluster);
    fs.renameSync(dataDirectory, databaseOf(root));
    syncDirectory(root);
  } catch (error) {
    const failure = fullDisk(root, error) ?? error;
    remove();
    throw failure;
  }
}

function serverEnded(why: string): Failure {
  return new Failure("database_ended", `the embedded PostgreSQL ended by itself: ${why}`);
}

/** Two segments of its log: a PostgreSQL that finds no place for the next one ends every connection without saying why. */
const SERVER_NEEDS_BYTES = 32 * 2 ** 20;

function fullDisk(root: string, error: unknown): Failure | undefined {
  if (!["database_ended", "database_unavailable"].includes(codeOf(error))) return undefined;
  const { bavail, bsize } = fs.statfsSync(root);
  if (bavail * bsize > SERVER_NEEDS_BYTES) return undefined;
  return new Failure("disk_full", `no space is left in ${root} to restore a database`, { cause: error });
}

/** What root makes in the root of another account, its lock too, a controller of that account cannot use afterwards. */
function checkOwner(root: string): void {
  const uid = fs.statSync(root, { throwIfNoEntry: false })?.uid ?? 0;
  if (os.userInfo().uid !== 0 || uid === 0) return;
  throw new Failure("root_unusable", `${root} belongs to another account: run this as that one, uid ${uid}`);
}

/** Refuses a root that has a database: it is never overwritten. */
export function checkEmpty(root: string): void {
  const place = databaseOf(root);
  if (!fs.existsSync(place) || fs.readdirSync(place).length === 0) return;
  throw new Failure("database_exists", `${place} holds a database already, and a restore does not overwrite one`);
}
