// SPDX-License-Identifier: Apache-2.0
// Queue attempts over thousands of seeds: nothing runs twice, nothing unknown runs, no stranger is signalled, every job ends.

import { test } from "node:test";
import { assertSeeds } from "./kit.ts";

test("P9: no attempt is started twice and none that is not in every slot, and every job gets its verdict, over 3000 seeds", async () => {
  await assertSeeds("attempts", 3000);
});
