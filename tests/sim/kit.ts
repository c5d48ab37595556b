// SPDX-License-Identifier: Apache-2.0
// The two ways in which a test runs a suite: over a range of seeds with those that once failed, and with one mishap at every
// step in turn.

import assert from "node:assert/strict";
import kept from "./seeds.json" with { type: "json" };
import { SINGLE_MISHAPS, type Suite } from "./run.ts";
import { describeFailure, runSeeds } from "./suites.ts";

export async function assertSeeds(suite: keyof typeof kept, count: number): Promise<void> {
  for (const seed of kept[suite] as readonly number[]) await assertRange(suite, seed, 1);
  await assertRange(suite, 1, count);
}

async function assertRange(suite: string, from: number, count: number): Promise<void> {
  const { seeds, failures } = await runSeeds({ suite, from, count });
  const [first] = failures;
  assert.ok(
    first === undefined,
    first === undefined ? "" : `${failures.length} of ${seeds} seeds: ${describeFailure(suite, first)}`,
  );
}

/** The n-th effect fails, for n = 1, 2, … until a run ends before it; how many runs that were. */
export async function assertEveryStep(suite: Suite, seeds: readonly number[]): Promise<number> {
  let runs = 0;
  for (const seed of seeds)
    for (const mishap of SINGLE_MISHAPS)
      for (let at = 1; ; at++) {
        const { violation, steps } = await suite({ seed, single: { at, mishap } });
        runs++;
        assert.equal(violation, undefined, `seed ${seed}, ${JSON.stringify(mishap)} at step ${at}`);
        if (at > steps) break;
      }
  return runs;
}
