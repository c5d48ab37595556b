// SPDX-License-Identifier: Apache-2.0
// What a job of another account shares with the agent: its launch directory, by the group of that account. Rules: the job may
// pass through the directory and write into work/ and result/ only, so it can replace nothing that the agent or the shim
// wrote; what the job left in a mode that the agent cannot read or remove is opened by a process of the job's account.

import fs from "node:fs/promises";
import path from "node:path";
import type { Clock } from "../std/clock.ts";
import { codeOf } from "../std/errors.ts";
import { type JobAccount, type LaunchService, reachShim } from "./launch-service.ts";
import { encodeParams, environmentOf } from "./spec.ts";
import { lookUntil, withinLimit } from "./watch.ts";

/** Passing through without reading. */
const PASS = 0o710;
/** Without the set-gid bit, which a hardened agent may not set: a job has no other group of its own. */
const BOTH = 0o770;
const ERRAND_PREFIX = ".errand-";
const ERRAND_WAIT_MS = 30_000;
const LOOK_MS = 50;

export async function giveGroup(place: string, { groupId }: JobAccount, mode: number): Promise<void> {
  await fs.chown(place, process.getuid?.() ?? -1, groupId);
  await fs.chmod(place, mode);
}

export function letPass(directory: string, account: JobAccount): Promise<void> {
  return giveGroup(directory, account, PASS);
}

/** A folder for the job, in a directory that it may pass through. */
export async function makeShared(directory: string, account: JobAccount): Promise<void> {
  await fs.mkdir(directory, { recursive: true, mode: 0o700 });
  await giveGroup(directory, account, BOTH);
}

export type Helper = { readonly service: LaunchService; readonly clock: Clock };

/** Makes what the job left in these places readable and removable for its group, and so for the agent. */
export function openToGroup(helper: Helper, places: readonly string[]): Promise<void> {
  return errand(helper, ["chmod", "-R", "u+rwX,g+rwX,-t", "--", ...places]);
}

/** Runs a command as the jobs' account, from a directory of its own; how it ends does not matter, what it changed does. */
async function errand({ service, clock }: Helper, argv: readonly string[]): Promise<void> {
  const { account } = service;
  const [place] = argv.slice(-1);
  if (account === undefined || place === undefined) return;
  const launch = path.dirname(place);
  const directory = path.join(path.dirname(launch), `${ERRAND_PREFIX}${path.basename(launch)}`);
  await fs.rm(directory, { recursive: true, force: true });
  try {
    await fs.mkdir(directory, { mode: 0o700 });
    await letPass(directory, account);
    const spec = { argv, workingDirectory: "/", limits: {} };
    const params = encodeParams(spec, environmentOf(account, {}), { cgroup: "own", account: account.name });
    await fs.writeFile(path.join(directory, "params"), params, { mode: 0o600 });
    const shim = await reachShim(service, directory);
    const appears = (name: string, signal: AbortSignal): Promise<true | undefined> =>
      lookUntil({
        watched: directory,
        periodMs: LOOK_MS,
        look: () => exists(path.join(directory, name)),
        clock,
        signal,
      });
    await withinLimit(clock, ERRAND_WAIT_MS, async (limit) => {
      void shim.ended.then(() => limit.abort());
      return (await appears("identity", limit.signal)) === true && (await shim.openGate());
    });
    await withinLimit(clock, ERRAND_WAIT_MS, ({ signal }) => appears("exit", signal));
  } finally {
    await fs.rm(directory, { recursive: true, force: true });
  }
}

async function exists(file: string): Promise<true | undefined> {
  try {
    await fs.access(file);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
