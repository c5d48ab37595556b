// SPDX-License-Identifier: Apache-2.0
// A process whose wall clock is wrong, by Debian's faketime; its monotonic clock and what it starts are right.

import { execFileSync } from "node:child_process";

/** For the environment of the process. offset as faketime takes it, such as "+1h" or "-1h". */
export function wrongClock(offset: string): Readonly<Record<string, string>> {
  // Where the library lies is the program's to know.
  const library = execFileSync("faketime", ["-f", "+0", "sh", "-c", 'printf %s "$LD_PRELOAD"'], { encoding: "utf8" });
  return { LD_PRELOAD: library, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: "1" };
}
