// SPDX-License-Identifier: Apache-2.0
// Sessions over thousands of seeds: hops, lost logs, networks left and entered again, burns.

import { test } from "node:test";
import { assertSeeds } from "./kit.ts";

test("P9: no position of a session runs twice, and what knows of everything is admitted in the end, over 3000 seeds", async () => {
  await assertSeeds("sessions", 3000);
});
