// SPDX-License-Identifier: Apache-2.0
// Model servers that somebody else started and `adopt` bound to their identity: no shim, no launch. Rule: the whole group is
// signalled only while its leader's identity is proved, and it has ended only when no member of it is seen.

import { constants } from "node:os";
import type { Clock } from "../std/clock.ts";
import { allPids, type Identity, isAlive, readProcessStat, signalGroup } from "../std/process.ts";

const LOOK_MS = 25;
const KILL_WAIT_MS = 2000;

/** Undefined once no member of the group runs; else why not. */
export async function stopForeign(identity: Identity, clock: Clock, graceMs: number): Promise<string | undefined> {
  for (const [signal, waitMs] of [
    [constants.signals.SIGTERM, graceMs],
    [constants.signals.SIGKILL, KILL_WAIT_MS],
  ] as const) {
    const signalled = signalGroup(identity, signal);
    if (signalled.kind === "refused" && signalled.reason !== "gone")
      return signalled.reason === "reused" || signalled.reason === "other-boot"
        ? undefined
        : `nothing was signalled: ${signalled.reason}`;
    if (await isEmptyWithin(identity, clock, waitMs)) return undefined;
  }
  return `processes of group ${identity.pid} did not end`;
}

async function isEmptyWithin(identity: Identity, clock: Clock, limitMs: number): Promise<boolean> {
  const until = clock.monotonicMs() + limitMs;
  for (;;) {
    if (members(identity).length === 0) return true;
    if (clock.monotonicMs() >= until) return false;
    await clock.sleep(LOOK_MS);
  }
}

/** A group keeps its number taken while it has a member, so without the leader they are still of this group. */
function members(identity: Identity): readonly number[] {
  return allPids().filter((pid) => {
    const stat = readProcessStat(pid);
    return stat?.groupId === identity.pid && !"ZX".includes(stat.state);
  });
}

/** Resolves true once it is gone, false when the signal aborted first. */
export async function waitForeignGone(identity: Identity, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const periodMs = 250;
  while (isAlive(identity)) {
    if (signal.aborted) return false;
    await clock.sleep(periodMs, signal);
  }
  return true;
}
