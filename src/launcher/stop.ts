// SPDX-License-Identifier: Apache-2.0
// Stops a launch: the shim is asked by SIGTERM to end the job's group, then by SIGUSR1 to kill everything of it. Rules: only
// the shim is ever signalled, after its identity was proved; a stop has succeeded only when the exit file is there.

import { constants } from "node:os";
import type { Clock } from "../std/clock.ts";
import { type Identity, type Refusal, signalIdentity } from "../std/process.ts";
import type { Ending, Exit } from "./exit.ts";
import { readExit } from "./launch-files.ts";
import { waitEnding, withinLimit } from "./watch.ts";

export const STOP_GRACE_MS = 5000;
const KILL_TRIES = 3;
const KILL_WAIT_MS = 2000;

export type Stopped =
  /** `isForced`: it did not end by SIGTERM within the grace. */
  | { readonly kind: "stopped"; readonly exit: Exit; readonly isForced: boolean }
  | { readonly kind: "already-ended"; readonly exit: Exit }
  /** Nothing was signalled. gone, reused, other-boot: the shim does not run any more and left no exit file. */
  | { readonly kind: "refused"; readonly reason: Refusal }
  /** The shim vanished during the stop without an exit file. */
  | { readonly kind: "lost" }
  /** Signalled again and again, and still no exit file (a process stuck in the kernel). Ask again later. */
  | { readonly kind: "survived" };

type Target = { readonly directory: string; readonly identity: Identity };

export async function stopLaunch(target: Target, clock: Clock, graceMs: number): Promise<Stopped> {
  const before = await readExit(target.directory);
  if (before !== undefined) return { kind: "already-ended", exit: before };
  const asked = signalIdentity(target.identity, constants.signals.SIGTERM);
  if (asked.kind === "refused") {
    const exit = await readExit(target.directory);
    return exit === undefined ? asked : { kind: "already-ended", exit };
  }
  let ending = await waitAtMost(target, clock, graceMs);
  for (let tries = 0; ending === undefined && tries < KILL_TRIES; tries++) {
    // A refusal here means that the shim ended in this moment: the next look tells how.
    signalIdentity(target.identity, constants.signals.SIGUSR1);
    ending = await waitAtMost(target, clock, KILL_WAIT_MS);
  }
  if (ending === undefined) return { kind: "survived" };
  return ending.kind === "lost" ? ending : { kind: "stopped", exit: ending, isForced: ending.killAsked };
}

function waitAtMost(target: Target, clock: Clock, limitMs: number): Promise<Ending | undefined> {
  return withinLimit(clock, limitMs, (limit) => waitEnding(target, clock, limit.signal));
}
