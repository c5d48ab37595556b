// SPDX-License-Identifier: Apache-2.0
// Ends what is left of a launch whose shim cannot do it any more. Rules: only what surely belongs to the launch is signalled,
// each process through its own pidfd; it has succeeded only when nothing is seen any more, and else says what survived.

import { constants } from "node:os";
import type { Clock } from "../std/clock.ts";
import { signalIdentity } from "../std/process.ts";
import { killCgroup } from "./cgroup.ts";
import { findSurvivors, type Survivor, type Trace } from "./survivors.ts";

export const KILL_TRIES = 3;
export const KILL_WAIT_MS = 2000;
const LOOK_MS = 25;

/** Who still runs after SIGTERM, the grace and up to 3 times SIGKILL; none is success. A grace of 0 kills at once. */
export async function endRemains(trace: Trace, clock: Clock, graceMs: number): Promise<readonly Survivor[]> {
  let left = findSurvivors(trace);
  if (left.length > 0 && graceMs > 0) {
    signalAll(left, constants.signals.SIGTERM);
    signalAll(left, constants.signals.SIGCONT);
    left = await emptyWithin(trace, clock, graceMs);
  }
  for (let tries = 0; left.some(({ isProved }) => isProved) && tries < KILL_TRIES; tries++) {
    if (trace.cgroup !== undefined) killCgroup(trace.cgroup);
    signalAll(left, constants.signals.SIGKILL);
    left = await emptyWithin(trace, clock, KILL_WAIT_MS);
  }
  return left;
}

function signalAll(survivors: readonly Survivor[], signal: number): void {
  for (const { identity, isProved } of survivors) if (isProved) signalIdentity(identity, signal);
}

async function emptyWithin(trace: Trace, clock: Clock, limitMs: number): Promise<readonly Survivor[]> {
  const until = clock.monotonicMs() + limitMs;
  for (;;) {
    const left = findSurvivors(trace);
    if (left.length === 0 || clock.monotonicMs() >= until) return left;
    await clock.sleep(LOOK_MS);
  }
}
