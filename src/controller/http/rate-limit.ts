// SPDX-License-Identifier: Apache-2.0
// A token bucket for each remote address, for routes that take a guessable code. Bounded: the oldest address is forgotten.

import type { Clock } from "../../std/clock.ts";
import { Failure } from "../../std/errors.ts";

const ADDRESSES_MAX = 10_000;

export class RateLimit {
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(clock: Clock, options: { readonly perMinute: number }) {
    this.#clock = clock;
    this.#perMinute = options.perMinute;
  }

  /** Throws rate_limited when the address has used up its minute. */
  take(address: string): void {
    const now = this.#clock.monotonicMs();
    const bucket = this.#buckets.get(address) ?? { tokens: this.#perMinute, at: now };
    const tokens = Math.min(this.#perMinute, bucket.tokens + ((now - bucket.at) / 60_000) * this.#perMinute);
    this.#buckets.delete(address);
    if (this.#buckets.size >= ADDRESSES_MAX) {
      const oldest = this.#buckets.keys().next();
      if (oldest.done !== true) this.#buckets.delete(oldest.value);
    }
    this.#buckets.set(address, { tokens: Math.max(0, tokens - 1), at: now });
    if (tokens < 1) throw new Failure("rate_limited", `more than ${this.#perMinute} tries a minute from this address`);
  }
}
