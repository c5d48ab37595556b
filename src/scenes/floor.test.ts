// SPDX-License-Identifier: Apache-2.0
// The floor's decisions, pure: how soon it looks again, and when pressure begins and ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isUnderPressure, lookAgainMs } from "./floor.ts";

const GB = 1e9;

test("growth of 2 GB/s is looked at again before it can pass the floor by 300 ms", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 64 * GB }), (distance) => {
      const waitMs = lookAgainMs(10 * GB + distance, 10 * GB);
      assert.ok(waitMs >= 100 && waitMs <= 1000);
      const passedMs = waitMs - distance / (2 * 1e6);
      assert.ok(passedMs <= 300, `${distance}: seen ${passedMs} ms after the crossing`);
    }),
  );
});

test("pressure begins under the floor and ends well above it, not at it", () => {
  assert.equal(isUnderPressure(false, 3 * GB, 3 * GB), false);
  assert.equal(isUnderPressure(false, 3 * GB - 1, 3 * GB), true);
  assert.equal(isUnderPressure(true, 3 * GB, 3 * GB), true);
  assert.equal(isUnderPressure(true, 3.2 * GB, 3 * GB), true);
  assert.equal(isUnderPressure(true, 3.4 * GB, 3 * GB), false);
});
