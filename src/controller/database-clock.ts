// SPDX-License-Identifier: Apache-2.0
// The database's time, for what is compared between controllers: ids, whose order is the order of jobs of one priority. A
// machine whose clock is an hour off would put its jobs an hour before or behind all others.

import type { Database } from "../db/pool.ts";
import { CLOCK_OFFSET_WARN_MS } from "../protocol/node.ts";
import type { Clock } from "../std/clock.ts";
import type { Log } from "../std/log.ts";
import { Loop } from "../std/loop.ts";

const READ_EVERY_MS = 10_000;
/** A smaller change is the noise of a loaded machine: following it would put jobs of one moment out of order. */
const CHANGE_MIN_MS = 250;

export type DatabaseClockOptions = { readonly db: Database; readonly clock: Clock; readonly log: Log };

export class DatabaseClock {
  readonly #options: DatabaseClockOptions;
  #offsetMs = 0;
  #isWarned = false;

  constructor(options: DatabaseClockOptions) {
    this.#options = options;
  }

  /** Milliseconds since the epoch, by the machine's clock corrected with what was last read. */
  now(): number {
    return Math.round(this.#options.clock.now() + this.#offsetMs);
  }

  /** Returns after the first reading, also a failed one; the rest follow on the stack's loop. */
  async start(stack: AsyncDisposableStack): Promise<void> {
    const { clock, log } = this.#options;
    const first = Promise.withResolvers<void>();
    const round = (): Promise<void> => this.#read().finally(first.resolve);
    stack.use(new Loop({ name: "database-clock", periodMs: READ_EVERY_MS, clock, log, round }));
    await first.promise;
  }

  async #read(): Promise<void> {
    const { db, clock, log } = this.#options;
    const { ms, at } = await db.service(async (tx) => {
      const began = clock.monotonicMs();
      const row = await tx.one<{ ms: string }>("select round(extract(epoch from clock_timestamp()) * 1000) as ms", []);
      // The answer was made in the middle of its way, as far as anybody here can tell.
      return { ms: Number(row.ms), at: clock.now() - (clock.monotonicMs() - began) / 2 };
    });
    if (Math.abs(ms - at - this.#offsetMs) > CHANGE_MIN_MS) this.#offsetMs = ms - at;
    const isOff = Math.abs(this.#offsetMs) > CLOCK_OFFSET_WARN_MS;
    if (isOff && !this.#isWarned)
      log.warn({ offsetMs: Math.round(-this.#offsetMs) }, "this machine's clock is not the database's: set it");
    this.#isWarned = isOff;
  }
}
