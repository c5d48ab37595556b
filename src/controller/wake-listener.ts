// SPDX-License-Identifier: Apache-2.0
// Hears what other controllers woke. Every so often it says something to itself: a connection that does not hear that is
// half-open, deaf without an error, and is replaced. Rule: on each new connection whoever waits here looks again.

import { type Listening, listen } from "../db/listen.ts";
import type { ConnectionOptions, Database } from "../db/pool.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import { Loop } from "../std/loop.ts";
import type { Random } from "../std/random.ts";
import { WAKE_CHANNEL } from "./wake-relay.ts";
import type { Wakeups } from "./wakeups.ts";

export type ListenerState = {
  /** Whether anything was heard within the time in which a probe should have been. False before the first. */
  isHeard(): boolean;
  /** Wall clock, milliseconds since the epoch; undefined before anything was heard. */
  lastHeardAt(): number | undefined;
};

/** Of a controller without a listening connection: others are found by the poll. */
export const noListener: ListenerState = { isHeard: () => false, lastHeardAt: () => undefined };

export type WakeListenerOptions = {
  readonly connection: ConnectionOptions;
  /** For our own notifications: through the pool, so that they come by another connection than the one that is tried. */
  readonly db: Database;
  readonly wakeups: Wakeups;
  /** Drawn at start; names a channel that nobody else listens to. */
  readonly sender: string;
  readonly onWake: (payload: string) => void;
  readonly probeMs: number;
  readonly probeWithinMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
};

export class WakeListener implements AsyncDisposable, ListenerState {
  readonly #options: WakeListenerOptions;
  readonly #channel: string;
  readonly #listening: Listening;
  readonly #loop: Loop;
  #heard = new AbortController();
  #last: { readonly at: number; readonly monotonicMs: number } | undefined;

  constructor(options: WakeListenerOptions) {
    this.#options = options;
    this.#channel = `holdfast_probe_${options.sender}`;
    const { connection, wakeups, probeMs, clock, random, log } = options;
    this.#listening = listen({
      connection,
      channels: [WAKE_CHANNEL, this.#channel],
      onNotification: (channel, payload) => {
        this.#hear();
        if (channel === WAKE_CHANNEL) options.onWake(payload);
      },
      onListening: () => {
        this.#hear();
        // What was said while nobody listened is gone.
        wakeups.wakeEveryoneHere();
      },
      clock,
      random,
      log,
    });
    this.#loop = new Loop({
      name: "wake-probe",
      periodMs: probeMs,
      clock,
      log,
      round: (signal) => this.#probe(signal),
    });
  }

  isHeard(): boolean {
    const { clock, probeMs, probeWithinMs } = this.#options;
    return this.#last !== undefined && clock.monotonicMs() - this.#last.monotonicMs <= probeMs + probeWithinMs;
  }

  lastHeardAt(): number | undefined {
    return this.#last?.at;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await this.#listening[Symbol.asyncDispose]();
  }

  #hear(): void {
    const { clock } = this.#options;
    this.#last = { at: clock.now(), monotonicMs: clock.monotonicMs() };
    this.#heard.abort();
  }

  async #probe(signal: AbortSignal): Promise<void> {
    const { db, clock, probeWithinMs } = this.#options;
    const heard = new AbortController();
    this.#heard = heard;
    await db.service((tx) => tx.query("select pg_notify($1, '')", [this.#channel]));
    await clock.sleep(probeWithinMs, AbortSignal.any([signal, heard.signal]));
    if (signal.aborted || heard.signal.aborted) return;
    this.#listening.replace(`our own notification was not heard within ${probeWithinMs} ms`);
  }
}
