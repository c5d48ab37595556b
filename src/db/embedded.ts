// SPDX-License-Identifier: Apache-2.0
// A private real PostgreSQL: a child of this process, on a unix socket in its own data directory (0700), without TCP.
// Exclusive for the life of the process (flock). A server that a killed process left is proved to be ours and stopped first.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { systemClock } from "../std/clock.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { fileFailure, makeDirectory } from "../std/files.ts";
import { takeLock } from "../std/lock.ts";
import type { Log } from "../std/log.ts";
import { identityOf, isAlive, signalIdentity } from "../std/process.ts";
import { type Account, checkReachable, databaseAccount, installBinaries } from "./embedded-files.ts";
import type { ConnectionOptions } from "./pool.ts";

export type EmbeddedOptions = {
  /** HOLDFAST_ROOT; made when missing. */
  readonly root: string;
  readonly log: Log;
  /** False gives up durability for speed: for tests only. */
  readonly durable?: boolean;
};

export type Embedded = AsyncDisposable & {
  /** The schema's owner: migrations and first run. */
  readonly owner: ConnectionOptions;
  /** What the controller logs in with: owns nothing. */
  readonly controller: ConnectionOptions;
  readonly serverVersion: string;
  /** Resolves with the reason when the server ends without being asked to. */
  readonly exited: Promise<string>;
};

const OWNER = "holdfast_owner";
const DATABASE = "holdfast";
/** sun_path holds 108 bytes with its NUL; see unix(7). */
const SOCKET_PATH_MAX = 107;
const START_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 10_000;
const SIGINT = 2;

export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { root } = options;
  const dataDirectory = path.join(root, "database");
  checkSocketPath(dataDirectory);
  makeDirectory(root, 0o755);
  const account = databaseAccount();
  if (account !== undefined) checkReachable(root, account);
  await using stack = new AsyncDisposableStack();
  stack.defer(lockRoot(root));
  const binaries = installBinaries(root);
  await stopLeftover(dataDirectory, options.log);
  await createCluster({ root, binaries, dataDirectory, account });
  checkMajor(binaries, dataDirectory);

  const server = startServer({ ...options, binaries, dataDirectory, account });
  stack.defer(() => stopServer(server.process));
  const base = { host: dataDirectory, port: 5432 };
  const serverVersion = await waitReady({ ...base, user: OWNER, database: "postgres" }, server);
  const running = stack.move();
  return {
    owner: { ...base, user: OWNER, database: DATABASE },
    controller: { ...base, user: "holdfast_controller", database: DATABASE },
    serverVersion,
    exited: server.exited,
    [Symbol.asyncDispose]: async () => {
      server.isStopping = true;
      await running.disposeAsync();
    },
  };
}

function checkSocketPath(dataDirectory: string): void {
  const length = Buffer.byteLength(path.join(dataDirectory, ".s.PGSQL.5432"));
  if (length > SOCKET_PATH_MAX) {
    throw new Failure(
      "root_unusable",
      `HOLDFAST_ROOT is too long by ${length - SOCKET_PATH_MAX} bytes: a unix socket's path below it may have ${SOCKET_PATH_MAX}`,
    );
  }
}

function lockRoot(root: string): () => void {
  const note = `pid ${process.pid}, started ${new Date(systemClock.now()).toISOString()}`;
  const lock = takeLock(path.join(root, "database.lock"), note);
  if (lock.kind === "taken") return lock.release;
  const holder = lock.holder === "" ? "another process" : lock.holder;
  throw new Failure("root_in_use", `the database in ${root} is in use by ${holder}`);
}

/** The postmaster of a process that was killed: same data directory, proved by its working directory, then stopped. */
async function stopLeftover(dataDirectory: string, log: Log): Promise<void> {
  let pid: number;
  try {
    pid = Number(fs.readFileSync(path.join(dataDirectory, "postmaster.pid"), "utf8").split("\n")[0]);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
    throw fileFailure(dataDirectory, error);
  }
  const identity = identityOf(pid);
  if (identity === undefined) return;
  if (!isPostmasterOf(pid, dataDirectory)) return takePidFile(dataDirectory, pid);
  log.warn({ pid }, "a server that a killed process left is still running: stopping it first");
  signalIdentity(identity, SIGINT);
  const until = systemClock.monotonicMs() + STOP_WITHIN_MS;
  while (isAlive(identity)) {
    if (systemClock.monotonicMs() > until)
      throw new Failure(
        "root_in_use",
        `the PostgreSQL with pid ${pid} that was left on ${dataDirectory} does not stop`,
      );
    await systemClock.sleep(20);
  }
}

/**
 * The pid belongs to a stranger by now, for whom PostgreSQL would refuse to start. It accepts its parent's, which is ours, and
 * goes on to look whether anybody still uses the shared memory that the file names; see CreateLockFile in miscinit.c.
 */
function takePidFile(dataDirectory: string, pid: number): void {
  const file = path.join(dataDirectory, "postmaster.pid");
  const fd = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_NOFOLLOW);
  try {
    const [first, ...rest] = fs.readFileSync(fd, "utf8").split("\n");
    if (Number(first) !== pid) return;
    fs.ftruncateSync(fd, 0);
    fs.writeSync(fd, [String(process.pid), ...rest].join("\n"), 0);
  } finally {
    fs.closeSync(fd);
  }
}

function isPostmasterOf(pid: number, dataDirectory: string): boolean {
  try {
    return (
      fs.readlinkSync(`/proc/${pid}/cwd`) === fs.realpathSync(dataDirectory) &&
      path.basename(fs.readlinkSync(`/proc/${pid}/exe`)).startsWith("postgres")
    );
  } catch {
    // Gone, or not ours to look at: then it is not a child that we left.
    return false;
  }
}

type Cluster = {
  readonly root: string;
  readonly binaries: string;
  readonly dataDirectory: string;
  readonly account: Account | undefined;
};

/** Made beside its place and renamed, so that a start that was killed leaves no half of a database. */
async function createCluster({ root, binaries, dataDirectory, account }: Cluster): Promise<void> {
  if (fs.existsSync(path.join(dataDirectory, "PG_VERSION"))) return;
  // Ours comes by rename, whole: what lies here without a version is not ours, or was damaged. Either way it is not deleted.
  if (fs.existsSync(dataDirectory) && fs.readdirSync(dataDirectory).length > 0)
    throw new Failure(
      "root_unusable",
      `${dataDirectory} holds files but no PG_VERSION, so it is not a whole database: move it away, or restore it`,
    );
  const partial = path.join(root, "database.new");
  try {
    fs.rmSync(partial, { recursive: true, force: true });
    fs.mkdirSync(partial, { mode: 0o700 });
    if (account !== undefined) fs.chownSync(partial, account.uid, account.gid);
    await promisify(execFile)(
      path.join(binaries, "bin", "initdb"),
      [
        "--pgdata",
        partial,
        "--username",
        OWNER,
        "--auth",
        "trust",
        "--encoding",
        "UTF8",
        "--locale-provider",
        "builtin",
        "--builtin-locale",
        "C.UTF-8",
        "--locale",
        "C",
        "--data-checksums",
        "--no-instructions",
      ],
      {
        env: serverEnvironment(binaries),
        ...(account === undefined ? {} : { uid: account.uid, gid: account.gid }),
        cwd: "/",
      },
    );
    fs.writeFileSync(
      path.join(partial, "pg_hba.conf"),
      "# The directory's mode 0700 decides who may connect.\nlocal all all trust\n",
    );
    fs.renameSync(partial, dataDirectory);
  } catch (error) {
    fs.rmSync(partial, { recursive: true, force: true });
    if (/No space left/.test(messageOf(error)))
      throw new Failure("disk_full", `no space is left to create a database in ${root}`, { cause: error });
    throw fileFailure(root, error);
  }
}

/** Neither our secrets nor a PGDATA of someone else reach the server. */
function serverEnvironment(binaries: string): NodeJS.ProcessEnv {
  return { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC", LD_LIBRARY_PATH: path.join(binaries, "lib") };
}

function checkMajor(binaries: string, dataDirectory: string): void {
  const data = fs.readFileSync(path.join(dataDirectory, "PG_VERSION"), "utf8").trim();
  const program = path.basename(binaries).split(".")[0];
  if (data === program) return;
  throw new Failure(
    "database_major_mismatch",
    `the data in ${dataDirectory} was written by PostgreSQL ${data}, and this Holdfast brings PostgreSQL ${program}: dump it with the version that wrote it`,
  );
}

type Server = {
  readonly process: ChildProcess;
  readonly exited: Promise<string>;
  readonly logFile: string;
  isStopping: boolean;
};
type Start = EmbeddedOptions & Cluster;

function startServer({ root, binaries, dataDirectory, account, durable }: Start): Server {
  const logFile = path.join(root, "postgres.log");
  const fd = openServerLog(logFile);
  const settings: Record<string, string> = {
    listen_addresses: "",
    unix_socket_directories: dataDirectory,
    unix_socket_permissions: "0700",
    max_connections: "80",
    shared_buffers: "64MB",
    log_line_prefix: "%m [%p] ",
    log_timezone: "UTC",
    timezone: "UTC",
    ...(durable === false ? { fsync: "off", synchronous_commit: "off", full_page_writes: "off" } : {}),
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const child = spawn(path.join(binaries, "bin", "postgres"), ["-D", dataDirectory, ...args], {
    // A group of its own: the terminal's Ctrl-C is for us, and we stop it in order.
    detached: true,
    stdio: ["ignore", fd, fd],
    env: serverEnvironment(binaries),
    cwd: "/",
    ...(account === undefined ? {} : { uid: account.uid, gid: account.gid }),
  });
  fs.closeSync(fd);
  const { promise: exited, resolve } = Promise.withResolvers<string>();
  const server: Server = { process: child, exited, logFile, isStopping: false };
  child.once("error", (error) => resolve(messageOf(error)));
  child.once("exit", (code, signal) => {
    if (!server.isStopping) resolve(`${signal ?? `exit code ${code}`}; ${lastLines(logFile)}`);
  });
  return server;
}

const SERVER_LOG_BYTES_MAX = 10 * 1024 * 1024;

function openServerLog(file: string): number {
  try {
    const isLong = fs.existsSync(file) && fs.statSync(file).size > SERVER_LOG_BYTES_MAX;
    return fs.openSync(file, isLong ? "w" : "a", 0o600);
  } catch (error) {
    throw fileFailure(file, error);
  }
}

function lastLines(file: string): string {
  try {
    return fs.readFileSync(file, "utf8").trim().split("\n").slice(-3).join(" / ");
  } catch (error) {
    return messageOf(error);
  }
}

/** Tries to connect until the server answers; returns its version. Makes our database on the first start. */
async function waitReady(connection: ConnectionOptions, server: Server): Promise<string> {
  const died = server.exited.then((why) => ({ why }));
  const until = systemClock.monotonicMs() + START_WITHIN_MS;
  for (;;) {
    const client = new pg.Client(connection);
    client.on("error", () => {});
    const answer = await Promise.race([
      died,
      client.connect().then(
        () => "connected" as const,
        (error: unknown) => ({ notYet: messageOf(error) }),
      ),
    ]);
    if (answer === "connected") {
      try {
        const { rows } = await client.query<{ version: string; exists: boolean }>(
          "select current_setting('server_version') as version, exists (select 1 from pg_database where datname = $1) as exists",
          [DATABASE],
        );
        if (rows[0]?.exists !== true) await client.query(`create database ${DATABASE}`);
        return rows[0]?.version ?? "unknown";
      } finally {
        await client.end();
      }
    }
    await client.end().catch(() => {});
    if ("why" in answer) {
      const code = /No space left/.test(answer.why) ? "disk_full" : "database_unavailable";
      throw new Failure(code, `the embedded PostgreSQL did not start: ${answer.why}`);
    }
    if (systemClock.monotonicMs() > until)
      throw new Failure(
        "database_unavailable",
        `the embedded PostgreSQL did not answer within ${START_WITHIN_MS / 1000} s: ${answer.notYet}; see ${server.logFile}`,
      );
    await systemClock.sleep(10);
  }
}

/** Fast shutdown, then immediate: no process is left. */
async function stopServer(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGINT");
  const done = new AbortController();
  const late = systemClock.sleep(STOP_WITHIN_MS, done.signal).then(() => done.signal.aborted || child.kill("SIGQUIT"));
  await gone;
  done.abort();
  await late;
}
