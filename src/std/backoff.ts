// SPDX-License-Identifier: Apache-2.0
// Waits between tries: exponential, capped, with jitter, so that a herd does not come back in step.

import type { Random } from "./random.ts";

export type Backoff = { readonly baseMs: number; readonly capMs: number };

/** The wait before try number `failures` + 1 (failures ≥ 1): between the full step and 1.5 × of it, never earlier than asked. */
export function backoffMs(backoff: Backoff, failures: number, random: Random): number {
  const step = Math.min(backoff.capMs, backoff.baseMs * 2 ** Math.min(30, Math.max(0, failures - 1)));
  return Math.round(step * (1 + random.fraction() / 2));
}
