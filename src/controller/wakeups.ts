// SPDX-License-Identifier: Apache-2.0
// Wakes long polls and live tails of this controller at once; a poll stands behind it for what others did.
// Rule: take a ticket before looking, wait on it after, so that nothing between the two is missed.

import type { Clock } from "../std/clock.ts";

/** Work of an organisation, one job, and whatever people of an organisation look at. */
export type Topic = `work:${string}` | `job:${string}` | `changes:${string}`;

export type Ticket = Disposable & {
  /** Resolves when the topic was woken since the ticket was taken, after ms, or when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** Whether the topic was woken since the ticket was taken. */
  readonly isWoken: boolean;
};

export class Wakeups {
  readonly #clock: Clock;
  readonly #waiting = new Map<Topic, Set<AbortController>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ticket(topic: Topic): Ticket {
    const woken = new AbortController();
    const waiting = this.#waiting.get(topic) ?? new Set();
    this.#waiting.set(topic, waiting.add(woken));
    return {
      get isWoken() {
        return woken.signal.aborted;
      },
      wait: (ms, signal) => this.#clock.sleep(ms, AbortSignal.any([signal, woken.signal])),
      [Symbol.dispose]: () => {
        waiting.delete(woken);
        if (waiting.size === 0 && this.#waiting.get(topic) === waiting) this.#waiting.delete(topic);
      },
    };
  }

  /** Told of every wake that began here, for the controllers beside this one. */
  onWake: ((topic: Topic) => void) | undefined;

  wake(topic: Topic): void {
    this.wakeHere(topic);
    this.onWake?.(topic);
  }

  wakeHere(topic: Topic): void {
    for (const woken of this.#waiting.get(topic) ?? []) woken.abort();
  }

  /** After a time in which wakes may have been missed: whoever waits here looks again. */
  wakeEveryoneHere(): void {
    for (const topic of this.#waiting.keys()) this.wakeHere(topic);
  }
}
