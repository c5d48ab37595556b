// SPDX-License-Identifier: Apache-2.0
// One PostgreSQL cluster in one directory: made by initdb beside its place and renamed, run as a child of this process on a
// unix socket inside the directory (0700), without TCP. Whoever calls has the directory to himself (see embedded.ts).

import { type ChildProcess, execFile, spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { systemClock } from "../std/clock.ts";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { fileFailure } from "../std/files.ts";
import type { Log } from "../std/log.ts";
import { identityOf, isAlive, signalIdentity } from "../std/process.ts";
import type { Account } from "./embedded-files.ts";
import type { ConnectionOptions } from "./pool.ts";

export type Cluster = {
  readonly root: string;
  /** Holds bin/ and lib/ of one version; see installBinaries. */
  readonly binaries: string;
  readonly dataDirectory: string;
  readonly account: Account | undefined;
  /** False gives up durability for speed. */
  readonly durable?: boolean;
};

export type RunningCluster = AsyncDisposable & {
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

/** How long the processes of a server whose first one was killed may take to end. */
const OLD_PROCESSES_MS = 15_000;
const OLD_PROCESSES_LOOK_MS = 100;

/** Starts the server of a cluster that is there; our database is made in it on the first start. */
export async function startCluster(cluster: Cluster): Promise<RunningCluster> {
  const until = systemClock.monotonicMs() + OLD_PROCESSES_MS;
  for (;;) {
    try {
      return await startOnce(cluster);
    } catch (error) {
      // They notice the death of their first process a moment later, and hold its shared memory until then.
      const isBusy = /pre-existing shared memory block/.test(messageOf(error));
      if (!isBusy || systemClock.monotonicMs() > until) throw error;
      await systemClock.sleep(OLD_PROCESSES_LOOK_MS);
    }
  }
}

async function startOnce(cluster: Cluster): Promise<RunningCluster> {
  await using stack = new AsyncDisposableStack();
  const server = startServer(cluster);
  stack.defer(() => stopServer(server.process));
  const { owner, controller } = connectionsTo(cluster.dataDirectory);
  const serverVersion = await waitReady({ ...owner, database: "postgres" }, server);
  const running = stack.move();
  return {
    owner,
    controller,
    serverVersion,
    exited: server.exited,
    [Symbol.asyncDispose]: async () => {
      server.isStopping = true;
      await running.disposeAsync();
    },
  };
}

/** How to reach the server that runs on this directory, for whoever may enter it. */
export function connectionsTo(dataDirectory: string): {
  readonly owner: ConnectionOptions;
  readonly controller: ConnectionOptions;
} {
  const base = { host: dataDirectory, port: 5432, database: DATABASE };
  return { owner: { ...base, user: OWNER }, controller: { ...base, user: "holdfast_controller" } };
}

export function checkSocketPath(dataDirectory: string): void {
  const length = Buffer.byteLength(path.join(dataDirectory, ".s.PGSQL.5432"));
  if (length > SOCKET_PATH_MAX) {
    throw new Failure(
      "root_unusable",
      `HOLDFAST_ROOT is too long by ${length - SOCKET_PATH_MAX} bytes: a unix socket's path below it may have ${SOCKET_PATH_MAX}`,
    );
  }
}

/** The postmaster of a process that was killed: same data directory, proved by its working directory, then stopped. */
export async function stopLeftover(dataDirectory: string, log: Log): Promise<void> {
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

/** Whether a whole cluster is there: ours comes by rename, so its version file says so. */
export function isCluster(dataDirectory: string): boolean {
  return fs.existsSync(path.join(dataDirectory, "PG_VERSION"));
}

/** The major version that wrote it, such as "18". */
export function writtenMajor(dataDirectory: string): string {
  return fs.readFileSync(path.join(dataDirectory, "PG_VERSION"), "utf8").trim();
}

/** Made beside its place and renamed, so that a start that was killed leaves no half of a database. */
export async function createCluster({ root, binaries, dataDirectory, account, durable }: Cluster): Promise<void> {
  if (isCluster(dataDirectory)) return;
  // What lies here without a version is not ours, or was damaged. Either way it is not deleted.
  if (fs.existsSync(dataDirectory) && fs.readdirSync(dataDirectory).length > 0)
    throw new Failure(
      "root_unusable",
      `${dataDirectory} holds files but no PG_VERSION, so it is not a whole database: move it away, or restore it`,
    );
  // A name of this process's own: the initdb of a start that was killed may still write into its own.
  const partial = `${dataDirectory}.new-${process.pid}`;
  try {
    removePartials(dataDirectory);
    fs.mkdirSync(partial, { mode: 0o700 });
    if (account !== undefined) fs.chownSync(partial, account.uid, account.gid);
    await runInitdb({ binaries, account }, [
      "--pgdata",
      partial,
      ...INITDB,
      ...(durable === false ? ["--no-sync"] : []),
    ]);
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

const INITDB =
  `--username ${OWNER} --auth trust --encoding UTF8 --locale-provider builtin --builtin-locale C.UTF-8 --locale C --data-checksums --no-instructions`.split(
    " ",
  );

/** What starts that were killed left beside this place. */
export function removePartials(dataDirectory: string): void {
  const prefix = `${path.basename(dataDirectory)}.new`;
  for (const name of fs.readdirSync(path.dirname(dataDirectory)))
    if (name.startsWith(prefix))
      fs.rmSync(path.join(path.dirname(dataDirectory), name), { recursive: true, force: true, maxRetries: 5 });
}

/** Writes through to the disk what a server without durability left in the page cache. */
export function syncCluster({ binaries, dataDirectory, account }: Cluster): Promise<void> {
  return runInitdb({ binaries, account }, ["--pgdata", dataDirectory, "--sync-only"]);
}

async function runInitdb(
  { binaries, account }: Pick<Cluster, "binaries" | "account">,
  args: readonly string[],
): Promise<void> {
  await promisify(execFile)(path.join(binaries, "bin", "initdb"), [...args], {
    env: serverEnvironment(binaries),
    ...(account === undefined ? {} : { uid: account.uid, gid: account.gid }),
    cwd: "/",
  });
}

/** Neither our secrets nor a PGDATA of someone else reach the server. */
function serverEnvironment(binaries: string): NodeJS.ProcessEnv {
  return { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC", LD_LIBRARY_PATH: path.join(binaries, "lib") };
}

type Server = {
  readonly process: ChildProcess;
  readonly exited: Promise<string>;
  readonly logFile: string;
  isStopping: boolean;
};
function startServer({ root, binaries, dataDirectory, account, durable }: Cluster): Server {
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
