// SPDX-License-Identifier: Apache-2.0
// The directory of one launch: <root>/launches/<launchId>/. Rule: it is created exclusively and made durable (the directory,
// spec.json and the entry in its parent) before a shim is spawned, so a start that may have happened is always found again.

import { existsSync } from "node:fs";
import fs from "node:fs/promises";
import path from "node:path";
import { codeOf, Failure } from "../std/errors.ts";
import { fileFailure } from "../std/files.ts";
import { type Exit, parseExit } from "./exit.ts";
import { parseIdentity, type ShimIdentity } from "./identity.ts";
import type { JobAccount } from "./launch-socket.ts";
import { type Helper, letPass, makeShared } from "./share.ts";
import { encodeSpec, type LaunchSpec, parseSpec } from "./spec.ts";

const REMOVED_PREFIX = ".removed-";
const LEFT_BEHIND = [REMOVED_PREFIX, ".errand-"];

/** Paths in a launch directory that others may use. */
export type LaunchPaths = {
  readonly stdout: string;
  readonly stderr: string;
  /** Where a job leaves its result (HOLDFAST_RESULT); of another account it does so in a folder of its own. */
  readonly result: string;
  readonly sharedResult: string;
  /** The default working directory. */
  readonly work: string;
};

export function pathsIn(directory: string): LaunchPaths {
  const within = (name: string): string => path.join(directory, name);
  return {
    stdout: within("stdout"),
    stderr: within("stderr"),
    result: within("result.json"),
    sharedResult: within(path.join("result", "result.json")),
    work: within("work"),
  };
}

export type LaunchContent = { readonly spec: LaunchSpec; readonly params: string; readonly account?: JobAccount };

export function launchesIn(root: string): string {
  return path.join(root, "launches");
}

export async function syncDirectory(directory: string): Promise<void> {
  await using handle = await fs.open(directory, "r");
  await handle.sync();
}

/** There completely or not at all: an agent may be killed between any two of these lines. */
async function writeSpec(directory: string, spec: LaunchSpec): Promise<void> {
  const file = path.join(directory, "spec.json");
  {
    await using handle = await fs.open(`${file}.tmp`, "wx", 0o600);
    await handle.writeFile(encodeSpec(spec));
    await handle.sync();
  }
  await fs.rename(`${file}.tmp`, file);
}

/**
 * False when the directory is there already: this launch was begun before. Everything is durable when it returns true.
 * `fill` gives the spec and params once the directory is ours.
 */
export async function createLaunch(directory: string, fill: () => LaunchContent): Promise<boolean> {
  try {
    await fs.mkdir(directory, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw diskFailure(directory, error);
  }
  try {
    const { spec, params, account } = fill();
    const { work, sharedResult } = pathsIn(directory);
    if (account !== undefined) {
      await letPass(directory, account);
      await makeShared(path.dirname(sharedResult), account);
    }
    if (spec.workingDirectory === work)
      await (account === undefined ? fs.mkdir(work, { mode: 0o700 }) : makeShared(work, account));
    await writeSpec(directory, spec);
    // Not synced: after a power cut there is no shim that would read it.
    await fs.writeFile(path.join(directory, "params"), params, { mode: 0o600, flag: "wx" });
    await syncDirectory(directory);
    await syncDirectory(path.dirname(directory));
  } catch (error) {
    await removeUnspawned(directory);
    throw diskFailure(directory, error);
  }
  return true;
}

/** Only for a directory that this very call created and for which no shim ran: nothing can have been started. */
export async function removeUnspawned(directory: string): Promise<void> {
  await fs.rm(directory, { recursive: true, force: true });
}

function diskFailure(directory: string, cause: unknown): Failure {
  const known = fileFailure(directory, cause);
  if (known instanceof Failure) return known;
  return new Failure("launch_failed", `the launch directory ${directory} could not be written`, { cause });
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await fs.readFile(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
    throw new Failure("launch_failed", `${file} could not be read`, { cause: error });
  }
}

/** The ending that the shim wrote; undefined while there is none. Throws launch_damaged. */
export async function readExit(directory: string): Promise<Exit | undefined> {
  const file = path.join(directory, "exit");
  const text = await readIfThere(file);
  return text === undefined ? undefined : parseExit(text, file);
}

export function hasDirectory(directory: string): boolean {
  return existsSync(directory);
}

export async function readSpec(directory: string): Promise<LaunchSpec | undefined> {
  const file = path.join(directory, "spec.json");
  const text = await readIfThere(file);
  return text === undefined ? undefined : parseSpec(text, file);
}

export async function readIdentity(directory: string): Promise<ShimIdentity | undefined> {
  const file = path.join(directory, "identity");
  const text = await readIfThere(file);
  return text === undefined ? undefined : parseIdentity(text, file);
}

/** Makes the folder of all launches and finishes removals that a crash interrupted. Idempotent. */
export async function openLaunches(root: string, helper?: Helper): Promise<void> {
  const launches = launchesIn(root);
  const account = helper?.account;
  try {
    await fs.mkdir(launches, { recursive: true, mode: 0o700 });
    if (account !== undefined) for (const directory of [root, launches]) await letPass(directory, account);
    await syncDirectory(root);
    const names = await fs.readdir(launches);
    for (const name of names.filter((each) => LEFT_BEHIND.some((prefix) => each.startsWith(prefix))))
      await removeTree(path.join(launches, name), helper);
  } catch (cause) {
    throw cause instanceof Failure ? cause : diskFailure(launches, cause);
  }
}

/** The ids of all launches, sorted; none when nothing was ever launched. */
export async function listLaunches(root: string): Promise<readonly string[]> {
  try {
    const entries = await fs.readdir(launchesIn(root), { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
      .map((entry) => entry.name)
      .sort();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw new Failure("launch_failed", `${launchesIn(root)} could not be read`, { cause: error });
  }
}

/** Takes the whole directory away at once (a half removed one would look interrupted), then its content. */
export async function removeDirectory(directory: string, helper?: Helper): Promise<void> {
  const aside = path.join(path.dirname(directory), `${REMOVED_PREFIX}${path.basename(directory)}`);
  try {
    await removeTree(aside, helper);
    await fs.rename(directory, aside);
    await syncDirectory(path.dirname(directory));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
    throw diskFailure(directory, error);
  }
  await removeTree(aside, helper);
}

/** Jobs leave folders without the right to write (a Go module cache): those are opened first. */
async function removeTree(directory: string, helper: Helper | undefined): Promise<void> {
  try {
    await fs.rm(directory, { recursive: true, force: true });
  } catch (error) {
    if (codeOf(error) !== "EACCES" && codeOf(error) !== "EPERM") throw error;
    const { work, sharedResult } = pathsIn(directory);
    if (helper === undefined) await openFolders(directory);
    else await helper.open([path.dirname(sharedResult), work]);
    await fs.rm(directory, { recursive: true, force: true });
  }
}

async function openFolders(directory: string): Promise<void> {
  await fs.chmod(directory, 0o700);
  for (const entry of await fs.readdir(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) await openFolders(path.join(directory, entry.name));
  }
}

export async function isReadable(file: string): Promise<boolean> {
  try {
    await fs.access(file, fs.constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
