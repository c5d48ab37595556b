// SPDX-License-Identifier: Apache-2.0
// The locker over thousands of seeds: any mix of deaths, power cuts, failing, wiped, swapped, turned back and rotten disks.

import { test } from "node:test";
import { assertSeeds } from "./kit.ts";

test("P10: an acknowledged record is in every slot, never goes backwards, and stale data is never adopted, over 5000 seeds", async () => {
  await assertSeeds("locker", 5000);
});
