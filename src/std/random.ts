// SPDX-License-Identifier: Apache-2.0
// Randomness is an argument, so that a simulator can seed it.

import { randomBytes } from "node:crypto";

export type Random = {
  /** n bytes; from the operating system in a real process. */
  bytes(n: number): Uint8Array;
  /** A number in [0, 1), for jitter only. */
  fraction(): number;
};

export const systemRandom: Random = {
  bytes: (n) => randomBytes(n),
  fraction: () => Math.random(),
};
