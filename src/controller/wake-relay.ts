// SPDX-License-Identifier: Apache-2.0
// Tells the other controllers on this database what this one woke, in one NOTIFY for all of 10 ms: NOTIFY makes commits queue
// up behind each other, so it is sent apart from them and seldom. A lost one costs a poll interval, never a job.

import type { Database } from "../db/pool.ts";
import type { Clock } from "../std/clock.ts";
import { messageOf } from "../std/errors.ts";
import type { Log } from "../std/log.ts";
import { Loop } from "../std/loop.ts";
import type { Topic, Wakeups } from "./wakeups.ts";

export const WAKE_CHANNEL = "holdfast_wake";
const GATHER_MS = 10;
/** A payload of NOTIFY has room for 8000 bytes, a topic takes at most 40 of them. */
const TOPICS_MAX = 150;

export type WakeRelayOptions = {
  readonly db: Database;
  readonly wakeups: Wakeups;
  /** Drawn at start: what we said ourselves is not news. */
  readonly sender: string;
  readonly clock: Clock;
  readonly log: Log;
};

export class WakeRelay implements AsyncDisposable {
  readonly #options: WakeRelayOptions;
  readonly #loop: Loop;
  #topics = new Set<Topic>();

  constructor(options: WakeRelayOptions) {
    this.#options = options;
    const { clock, log } = options;
    this.#loop = new Loop({ name: "wake-relay", periodMs: 60_000, clock, log, round: (signal) => this.#send(signal) });
    options.wakeups.onWake = (topic) => {
      this.#topics.add(topic);
      this.#loop.nudge();
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.wakeups.onWake = undefined;
    await this.#loop[Symbol.asyncDispose]();
  }

  /** What another controller said: wakes here without telling anybody again. */
  receive(payload: string): void {
    try {
      const { sender, topics } = JSON.parse(payload) as { sender: string; topics: Topic[] };
      if (sender !== this.#options.sender) for (const topic of topics) this.#options.wakeups.wakeHere(topic);
    } catch (error) {
      this.#options.log.warn({ error: messageOf(error) }, "a notification that is not ours");
    }
  }

  async #send(signal: AbortSignal): Promise<void> {
    await this.#options.clock.sleep(GATHER_MS, signal);
    const topics = [...this.#topics].slice(0, TOPICS_MAX);
    if (topics.length === 0) return;
    for (const topic of topics) this.#topics.delete(topic);
    if (this.#topics.size > 0) this.#loop.nudge();
    const payload = JSON.stringify({ sender: this.#options.sender, topics });
    await this.#options.db.service((tx) => tx.query("select pg_notify($1, $2)", [WAKE_CHANNEL, payload]));
  }
}
