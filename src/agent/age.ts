// SPDX-License-Identifier: Apache-2.0
// How long a running process has run, from its start ticks: no wall clock that somebody may set is involved.

import os from "node:os";
import type { Identity } from "../std/process.ts";

/** USER_HZ, the unit of /proc/pid/stat: 100 on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

export function ageMs(identity: Identity): number {
  return Math.max(0, (os.uptime() - Number(identity.startTicks) / TICKS_PER_SECOND) * 1000);
}
