// SPDX-License-Identifier: Apache-2.0
// The simulator's only source of chance: a small generator that one number seeds, so that a failing run can be repeated.

import type { Random } from "../../src/std/random.ts";

/** Mulberry32 (Tommy Ettinger, public domain): 32 bits of state, far more than one run draws. */
export class Chance implements Random {
  #state: number;

  constructor(seed: number) {
    // Seeds that lie side by side must not give runs that look alike.
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
    for (let turn = 0; turn < 4; turn++) this.fraction();
  }

  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to below. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  happens(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("bug: nothing to pick from");
    return item;
  }

  bytes(length: number): Uint8Array {
    const made = new Uint8Array(length);
    for (let at = 0; at < length; at += 4) {
      const word = Math.floor(this.fraction() * 2 ** 32);
      for (let byte = 0; byte < 4 && at + byte < length; byte++) made[at + byte] = (word >>> (8 * byte)) & 255;
    }
    return made;
  }
}
