// SPDX-License-Identifier: Apache-2.0
// One reconcile loop: takes no input, runs every periodMs and when nudged, never overlaps itself, never retries inside a
// round, and outlives a failing round. Its last run is visible. Rule: a round must be idempotent.

import type { Clock } from "./clock.ts";
import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";

export type LoopRun = {
  readonly startedAt: number;
  readonly tookMs: number;
  readonly error: string | undefined;
};

export type LoopOptions = {
  readonly name: string;
  /** Between the end of one round and the start of the next. */
  readonly periodMs: number;
  readonly round: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
};

export class Loop implements AsyncDisposable {
  readonly #options: LoopOptions;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #wake = new AbortController();
  #last: LoopRun | undefined;

  constructor(options: LoopOptions) {
    this.#options = options;
    this.#ended = this.#run();
  }

  /** The last finished round; undefined before the first one ends. */
  get last(): LoopRun | undefined {
    return this.#last;
  }

  /** Ends the current wait; a nudge during a round starts another round directly after it. */
  nudge(): void {
    this.#wake.abort();
  }

  /** Stops after the running round, whose signal is aborted. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#wake.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { name, periodMs, round, clock, log } = this.#options;
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      if (this.#stop.signal.aborted) return;
      const startedAt = clock.now();
      const began = clock.monotonicMs();
      let error: string | undefined;
      try {
        await round(this.#stop.signal);
      } catch (thrown) {
        error = messageOf(thrown);
        if (!this.#stop.signal.aborted) log.warn({ loop: name, error }, "round failed; the next one follows");
      }
      this.#last = { startedAt, tookMs: clock.monotonicMs() - began, error };
      await clock.sleep(periodMs, this.#wake.signal);
    }
  }
}
