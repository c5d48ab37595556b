// SPDX-License-Identifier: Apache-2.0
// What a job of another account shares with the agent: its launch directory, by the group of that account. Rules: the job may
// pass through the directory and write into work/ and result/ only, so it can replace nothing that the agent or the shim
// wrote; what the job left in a mode that the agent cannot read or remove is opened by a process of the job's account.

import fs from "node:fs/promises";
import type { JobAccount } from "./launch-socket.ts";

/** Passing through without reading. */
const PASS = 0o710;
/** Without the set-gid bit, which a hardened agent may not set: a job has no other group of its own. */
const BOTH = 0o770;

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

/** How the agent gets at what a job of this account left. */
export type Helper = {
  readonly account: JobAccount;
  /** Makes these places readable and removable for the group. */
  readonly open: (places: readonly string[]) => Promise<void>;
};
