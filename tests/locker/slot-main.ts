// SPDX-License-Identifier: Apache-2.0
// A process that takes the lock of a slot, says so, and holds it until it is killed; or says why it was refused.

import { openSlot } from "../../src/locker/locker.ts";
import { codeOf } from "../../src/std/errors.ts";

try {
  openSlot(process.argv[2] ?? "");
  process.stdout.write("taken\n");
  setInterval(() => {}, 1000);
} catch (error) {
  process.stdout.write(`${codeOf(error)}\n`);
}
