// SPDX-License-Identifier: Apache-2.0
// The findings of doctor about a controller, pure: what was seen → what it means and what to do.

import type { Check } from "../../protocol/access-schema.ts";
import type { LoopRun } from "../../std/loop.ts";
import type { Pulse } from "./operation-store.ts";

const CLOCK_WARN_MS = 5_000;
const SLOW_MS = 250;
/** A loop that is this many periods late, and this long, does not run. */
const LATE_PERIODS = 20;
const LATE_MS = 15_000;

const ok = (name: string, text: string): Check => ({ name, state: "ok", text, advice: "" });

export function checkDatabase(seen: { readonly pulse: Pulse; readonly tookMs: number; readonly now: number }): Check {
  const { pulse, tookMs, now } = seen;
  const offsetMs = now - pulse.now.getTime();
  const text = `PostgreSQL ${pulse.serverVersion} answers in ${Math.round(tookMs)} ms`;
  if (Math.abs(offsetMs) > CLOCK_WARN_MS) {
    return {
      name: "database",
      state: "warning",
      text: `${text}; this controller's clock is ${(Math.abs(offsetMs) / 1000).toFixed(1)} s ${offsetMs > 0 ? "ahead of" : "behind"} the database's`,
      advice:
        "Leases go by the database's clock, so nothing is lost; set the clock of this machine: timedatectl set-ntp true",
    };
  }
  if (tookMs > SLOW_MS)
    return {
      name: "database",
      state: "warning",
      text: `${text}, which is slow`,
      advice: "Look at the load of the database's machine and at its disk.",
    };
  return ok("database", text);
}

export type Heard = { isHeard(): boolean };

export function checkListener(listener: Heard): Check {
  return listener.isHeard()
    ? ok("listener", "hears what other controllers say")
    : {
        name: "listener",
        state: "warning",
        text: "does not hear other controllers; their wakes are found by the poll, within a second",
        advice: "LISTEN needs a direct connection: not one through a pooler in transaction mode.",
      };
}

export function checkLoops(
  loops: ReadonlyMap<string, { readonly last: LoopRun | undefined }>,
  periodMs: number,
  now: number,
): Check[] {
  return [...loops].map(([name, { last }]) => {
    if (last === undefined) return ok(name, "has not run yet");
    const ageMs = now - last.startedAt;
    if (last.error !== undefined)
      return {
        name,
        state: "fault",
        text: `the last round failed: ${last.error}`,
        advice: "The next one follows by itself; if it stays so, the controller's log has the reason.",
      };
    if (ageMs > Math.max(LATE_MS, LATE_PERIODS * periodMs))
      return {
        name,
        state: "fault",
        text: `the last round was ${Math.round(ageMs / 1000)} s ago`,
        advice: "The controller is overloaded or stuck: look at its log, then restart it. Nothing is lost by that.",
      };
    return ok(name, `ran ${Math.round(ageMs)} ms ago, in ${Math.round(last.tookMs)} ms`);
  });
}

/** The alarm of case 5: a lease that is over and not swept means that no controller sweeps. */
export function checkExpiredLeases(
  oldestMs: number,
  config: { readonly sweepMs: number; readonly leaseMs: number },
): Check {
  return oldestMs <= 2 * config.sweepMs + config.leaseMs
    ? ok("leases", "every lease that ran out was swept")
    : {
        name: "leases",
        state: "fault",
        text: `a lease ran out ${Math.round(oldestMs / 1000)} s ago and was not swept`,
        advice: "Look at the sweep above and at the controller's log: a row that cannot be moved is named there.",
      };
}
