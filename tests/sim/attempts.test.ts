// SPDX-License-Identifier: Apache-2.0
// Queue attempts over thousands of seeds and with a mishap at every step: nothing runs twice, nothing unknown runs, no stranger
// is signalled, and every job ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runAttempts } from "./attempts-suite.ts";
import { assertEveryStep, assertSeeds } from "./kit.ts";

test("P9: no attempt is started twice and none that is not in every slot, and every job gets its verdict, over 3000 seeds", async () => {
  await assertSeeds("attempts", 3000);
});

test("P9: the same with a death, a power cut or a failing disk at every single step in turn", async () => {
  assert.ok((await assertEveryStep(runAttempts, [3, 8])) > 1000);
});
