// SPDX-License-Identifier: Apache-2.0
// Attempts and sessions with exactly one mishap, at every step in turn: a death, a power cut, or a failing disk.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runAttempts } from "./attempts-suite.ts";
import { assertEveryStep } from "./kit.ts";
import { runSessions } from "./sessions-suite.ts";

test("P9: attempts with a death, a power cut or a failing disk at every single step in turn", async () => {
  assert.ok((await assertEveryStep(runAttempts, [3])) > 500);
});

test("P9: sessions with a death, a power cut or a failing disk at every single step in turn", async () => {
  assert.ok((await assertEveryStep(runSessions, [1, 2])) > 500);
});
