// SPDX-License-Identifier: Apache-2.0
// Finds processes that a test file left behind: by the mark in their environment, or by its temporary directory in their
// arguments, working directory or environment. Rule: one that does not end by itself at once is a failure, and is then ended.

import fs from "node:fs";
import { constants } from "node:os";
import { type Identity, identityOf, isAlive, signalIdentity } from "../../src/std/process.ts";
import { systemClock } from "../../src/std/clock.ts";

export type Leftover = { readonly identity: Identity; readonly command: string };

/** A process that was told to stop may still be ending when its test is over. */
const ENDS_WITHIN_MS = 3_000;
const LOOK_EVERY_MS = 50;

/** Those that still run after a short grace; they are stopped before this returns. */
export async function endLeftovers(marks: readonly string[]): Promise<readonly Leftover[]> {
  const left = await remaining(() => findMarked(marks));
  for (const signal of [constants.signals.SIGTERM, constants.signals.SIGKILL]) {
    for (const { identity } of left) signalIdentity(identity, signal);
    await remaining(() => left.filter(({ identity }) => isAlive(identity)));
  }
  return left;
}

async function remaining(look: () => readonly Leftover[]): Promise<readonly Leftover[]> {
  const deadline = performance.now() + ENDS_WITHIN_MS;
  for (;;) {
    const found = look();
    if (found.length === 0 || performance.now() > deadline) return found;
    await systemClock.sleep(LOOK_EVERY_MS);
  }
}

function findMarked(marks: readonly string[]): readonly Leftover[] {
  const pids = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((name) => {
    const pid = Number(name);
    if (pid === process.pid) return [];
    // The identity comes first: if the pid passes to another process after it, the signal is refused.
    const identity = identityOf(pid);
    if (identity === undefined || !isAlive(identity)) return [];
    const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
    const places = `${command}\n${read(`/proc/${pid}/environ`)}\n${workingDirectory(pid)}`;
    return marks.some((mark) => places.includes(mark)) ? [{ identity, command }] : [];
  });
}

function read(file: string): string {
  try {
    return fs.readFileSync(file, "latin1");
  } catch {
    // Gone meanwhile, or of another account: then it is not from a test of ours.
    return "";
  }
}

function workingDirectory(pid: number): string {
  try {
    return fs.readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}
