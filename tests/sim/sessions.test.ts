// SPDX-License-Identifier: Apache-2.0
// Sessions over thousands of seeds and with a mishap at every step: hops, lost logs, networks left and entered again, burns.

import assert from "node:assert/strict";
import { test } from "node:test";
import { assertEveryStep, assertSeeds } from "./kit.ts";
import { runSessions } from "./sessions-suite.ts";

test("P9: no position of a session runs twice, and what knows of everything is admitted in the end, over 3000 seeds", async () => {
  await assertSeeds("sessions", 3000);
});

test("P9: the same for sessions with a death, a power cut or a failing disk at every single step in turn", async () => {
  assert.ok((await assertEveryStep(runSessions, [1, 2, 3])) > 1000);
});
