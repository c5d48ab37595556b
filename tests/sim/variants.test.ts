// SPDX-License-Identifier: Apache-2.0
// A check must be able to fail: each broken program is caught within so many seeds, and a seed gives the same run each time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { VARIANTS } from "./run.ts";
import { CAUGHT, runSeeds, SUITES } from "./suites.ts";

test("every broken variant is caught: store after the gate, ack after one slot, sequence across lives, repair that re-stamps, burn from a snapshot, pid without start", async () => {
  for (const variant of VARIANTS) {
    const { suite, seeds } = CAUGHT[variant];
    let isCaught = false;
    await runSeeds({
      suite,
      from: 1,
      count: seeds,
      variant,
      isOver: () => isCaught,
      onFailure: () => (isCaught = true),
    });
    assert.ok(isCaught, `${variant} is not caught by ${seeds} seeds of ${suite}`);
  }
});

test("one seed gives one run: its steps are the same each time", async () => {
  for (const [name, suite] of Object.entries(SUITES)) {
    const [one, other] = [await suite({ seed: 7 }), await suite({ seed: 7 })];
    assert.deepEqual(one, other, name);
    assert.notDeepEqual(await suite({ seed: 8 }), one, name);
  }
});
