// SPDX-License-Identifier: Apache-2.0
// The suites by name, what each keeps, and running a range of seeds of one.

import { runAttempts } from "./attempts-suite.ts";
import { runLocker } from "./locker-suite.ts";
import type { RunEnd, Suite, Variant } from "./run.ts";
import { runSessions } from "./sessions-suite.ts";

export const SUITES: { readonly [name: string]: Suite } = {
  locker: runLocker,
  attempts: runAttempts,
  sessions: runSessions,
};

/** In which suite a broken program must be caught, and within how many seeds. */
export const CAUGHT: { readonly [variant in Variant]: { readonly suite: string; readonly seeds: number } } = {
  "store-after-gate": { suite: "attempts", seeds: 20 },
  "ack-after-one-slot": { suite: "attempts", seeds: 50 },
  "sequence-across-lives": { suite: "locker", seeds: 100 },
  "repair-restamps": { suite: "attempts", seeds: 200 },
  "burned-from-snapshot": { suite: "sessions", seeds: 500 },
  "pid-without-start": { suite: "attempts", seeds: 1000 },
};

export type Failure = { readonly seed: number; readonly end: RunEnd };

export type SeedRange = {
  readonly suite: string;
  readonly from: number;
  /** Stops there or when isOver says so. */
  readonly count: number;
  readonly variant?: Variant;
  readonly isOver?: () => boolean;
  readonly onFailure?: (failure: Failure) => void;
};

/** How many seeds ran, and those that broke something. */
export async function runSeeds(
  range: SeedRange,
): Promise<{ readonly seeds: number; readonly failures: readonly Failure[] }> {
  const { suite, from, count, variant, isOver = () => false, onFailure } = range;
  const run = SUITES[suite];
  if (run === undefined) throw new Error(`there is no suite "${suite}"; there are: ${Object.keys(SUITES).join(", ")}`);
  const failures: Failure[] = [];
  let seeds = 0;
  for (let seed = from; seed < from + count && !isOver(); seed++) {
    const end = await run({ seed, ...(variant === undefined ? {} : { variant }) });
    seeds++;
    if (end.violation === undefined) continue;
    const failure = { seed, end };
    failures.push(failure);
    onFailure?.(failure);
  }
  return { seeds, failures };
}

/** What a person needs to look at it: the command that repeats it, and the last steps. */
export function describeFailure(suite: string, { seed, end }: Failure): string {
  return `${suite}, seed ${seed}: ${end.violation ?? ""}\nrepeat: npm run sim -- ${suite} --seed ${seed}\n  ${end.trail.join("\n  ")}`;
}
