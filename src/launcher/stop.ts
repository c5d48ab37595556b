// SPDX-License-Identifier: Apache-2.0
// Stops a launch: the shim is asked by SIGTERM to end the job's group, then by SIGUSR1 to kill everything of it. Rules: nothing is
// signalled before its identity was proved; a stop has succeeded only when group, session and cgroup are seen empty.

import { constants } from "node:os";
import type { Clock } from "../std/clock.ts";
import { type Identity, isAlive, type Refusal, signalIdentity } from "../std/process.ts";
import type { Ending, Exit } from "./exit.ts";
import { readExit } from "./launch-files.ts";
import { allOf, survivorOfShim, type UnclearLaunch } from "./adopt.ts";
import { endRemains, KILL_TRIES, KILL_WAIT_MS } from "./remains.ts";
import { findSurvivors, type Survivor, type Trace } from "./survivors.ts";
import { lookUntil, waitEnding, withinLimit } from "./watch.ts";

export const STOP_GRACE_MS = 5000;
/** For two outputs of a gigabyte on a busy machine. */
const SETTLE_WAIT_MS = 60_000;

export type Stopped =
  /** `isForced`: it did not end by SIGTERM within the grace. */
  | { readonly kind: "stopped"; readonly exit: Exit; readonly isForced: boolean }
  | { readonly kind: "already-ended"; readonly exit: Exit }
  /** No shim and no exit file any more; what it left was ended, and nothing of it runs. */
  | { readonly kind: "gone"; readonly reason: Exclude<Refusal, "legacy" | "not-group-leader"> }
  /** Nothing was signalled: the record does not say which process. */
  | { readonly kind: "refused"; readonly reason: "legacy" | "not-group-leader" }
  /** Signalled again and again, or not provably ours, and still there. Ask again later. */
  | { readonly kind: "survived"; readonly survivors: readonly Survivor[] };

export type Target = Trace & { readonly directory: string; readonly identity: Identity };

export async function stopLaunch(target: Target, clock: Clock, graceMs: number): Promise<Stopped> {
  const before = await readExit(target.directory);
  if (before !== undefined) return seenEmpty(target, clock, { kind: "already-ended", exit: before });
  const asked = signalIdentity(target.identity, constants.signals.SIGTERM);
  if (asked.kind === "refused") {
    const { reason } = asked;
    if (reason === "legacy" || reason === "not-group-leader") return { kind: "refused", reason };
    const exit = await readExit(target.directory);
    if (exit !== undefined) return seenEmpty(target, clock, { kind: "already-ended", exit });
    const survivors = await endRemains(target, clock, graceMs);
    return survivors.length === 0 ? { kind: "gone", reason } : { kind: "survived", survivors };
  }
  let ending = await waitAtMost(target, clock, graceMs);
  for (let tries = 0; ending === undefined && tries < KILL_TRIES; tries++) {
    // A refusal here means that the shim ended in this moment: the next look tells how.
    signalIdentity(target.identity, constants.signals.SIGUSR1);
    ending = await waitAtMost(target, clock, KILL_WAIT_MS);
  }
  // Nothing of the job runs: the shim hashes what it wrote, and then writes the exit file.
  if (ending === undefined && findSurvivors(target).length === 0)
    ending = await waitAtMost(target, clock, SETTLE_WAIT_MS);
  if (ending === undefined) return { kind: "survived", survivors: [...findSurvivors(target), ...shimOf(target)] };
  // Its shim vanished in the middle; the wait has seen to it that nothing is left.
  if (ending.kind === "lost") return { kind: "gone", reason: "gone" };
  return seenEmpty(target, clock, { kind: "stopped", exit: ending, isForced: ending.killAsked });
}

function shimOf({ identity }: Target): readonly Survivor[] {
  return isAlive(identity) ? [survivorOfShim(identity)] : [];
}

const LOOK_AGAIN_MS = 500;

/** A launch that cannot tell its end any more: resolves true once nothing of it is seen, false when the signal aborted first. */
export async function waitEmpty(target: UnclearLaunch, clock: Clock, signal: AbortSignal): Promise<boolean> {
  const look = (): Promise<true | undefined> => Promise.resolve(allOf(target).length === 0 ? true : undefined);
  const seen = await lookUntil({ watched: target.directory, periodMs: LOOK_AGAIN_MS, look, clock, signal });
  return seen === true;
}

/** Ends a launch that cannot tell its end any more: its shim is asked, and then everything of it is killed. Who survived. */
export async function endUnclear(target: UnclearLaunch, clock: Clock, graceMs: number): Promise<readonly Survivor[]> {
  const { identity } = target;
  if (identity !== undefined && signalIdentity(identity, constants.signals.SIGTERM).kind !== "refused") {
    const isOver = await withinLimit(clock, graceMs, (limit) => waitEmpty(target, clock, limit.signal));
    // Its death takes its job along.
    if (!isOver) signalIdentity(identity, constants.signals.SIGKILL);
  }
  await endRemains(target, clock, graceMs);
  return allOf(target);
}

/** The shim saw no child left; this looks from outside too, and ends what such a look should never find. */
async function seenEmpty(target: Target, clock: Clock, stopped: Stopped): Promise<Stopped> {
  const survivors = await endRemains(target, clock, 0);
  return survivors.length === 0 ? stopped : { kind: "survived", survivors };
}

function waitAtMost(target: Target, clock: Clock, limitMs: number): Promise<Ending | undefined> {
  return withinLimit(clock, limitMs, (limit) => waitEnding(target, clock, limit.signal));
}
