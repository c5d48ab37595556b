// SPDX-License-Identifier: Apache-2.0
// A token bucket for each remote address or name, for routes that take what could be guessed. Bounded: the oldest key is forgotten.

import type { Clock } from "../../std/clock.ts";
import { Failure } from "../../std/errors.ts";

const KEYS_MAX = 10_000;

export class RateLimit {
  readonly #clock: Clock;
  readonly #perMinute: number;
  readonly #what: string;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(clock: Clock, options: { readonly perMinute: number; readonly what: string }) {
    this.#clock = clock;
    this.#perMinute = options.perMinute;
    this.#what = options.what;
  }

  /** Throws rate_limited when the key has used up its minute. */
  take(key: string): void {
    const now = this.#clock.monotonicMs();
    const bucket = this.#buckets.get(key) ?? { tokens: this.#perMinute, at: now };
    const tokens = Math.min(this.#perMinute, bucket.tokens + ((now - bucket.at) / 60_000) * this.#perMinute);
    this.#buckets.delete(key);
    if (this.#buckets.size >= KEYS_MAX) {
      const oldest = this.#buckets.keys().next();
      if (oldest.done !== true) this.#buckets.delete(oldest.value);
    }
    this.#buckets.set(key, { tokens: Math.max(0, tokens - 1), at: now });
    if (tokens < 1) throw new Failure("rate_limited", `more than ${this.#perMinute} tries a minute from ${this.#what}`);
  }
}
