// SPDX-License-Identifier: Apache-2.0
// The memory floor: below so much available memory this node gives up its own work, before the kernel's killer picks something.
// Rules: RAM alone counts, whatever swap is free; one action at a time, then its effect is awaited; only what is ours is
// stopped, jobs before models, the least important first; what is said names who used the memory.

import type { Clock } from "../std/clock.ts";
import { messageOf } from "../std/errors.ts";
import type { Log } from "../std/log.ts";
import { sizeText } from "../std/units.ts";
import type { Available } from "./memory.ts";

/** Something of ours that can be given up. */
export type Victim = {
  /** For people: "job job_…", "model qwen". */
  readonly name: string;
  /** Resolves when nothing of it runs. */
  readonly giveUp: (why: string) => Promise<void>;
};

export type FloorOptions = {
  /** Undefined: there is no floor. */
  readonly floorBytes: () => number | undefined;
  readonly available: () => Available | undefined;
  /** In the order in which they are given up; asked anew before each action. */
  readonly victims: () => readonly Victim[];
  /** The largest users of memory of this machine, for people. */
  readonly whoUses: () => string;
  /** A switch that is under way ends here. */
  readonly abortSwitch: (why: string) => void;
  readonly clock: Clock;
  readonly log: Log;
};

const LOOK_FIRST_MS = 100;
const LOOK_LAST_MS = 1000;
/** The fastest growth that must be seen in time. */
const GROWTH_BYTES_PER_MS = 4e6;
/** Above the floor by so much, the pressure is over. */
const HYSTERESIS = 0.1;
const HYSTERESIS_BYTES_MIN = 256 * 1024 * 1024;
const HYSTERESIS_BYTES_MAX = 1024 * 1024 * 1024;
/** How long the effect of an action is awaited before the next one. */
const EFFECT_WAIT_MS = 3_000;

/** The next look, by how far away the floor is. Pure. */
export function lookAgainMs(availableBytes: number, floorBytes: number): number {
  const distance = Math.max(0, availableBytes - floorBytes);
  return Math.min(LOOK_LAST_MS, Math.max(LOOK_FIRST_MS, distance / GROWTH_BYTES_PER_MS));
}

/** Whether new work may be started: once under the floor, only well above it again. Pure. */
export function isUnderPressure(wasUnder: boolean, availableBytes: number, floorBytes: number): boolean {
  if (availableBytes < floorBytes) return true;
  const above = Math.min(HYSTERESIS_BYTES_MAX, Math.max(HYSTERESIS_BYTES_MIN, floorBytes * HYSTERESIS));
  return wasUnder && availableBytes < floorBytes + above;
}

export class Floor implements AsyncDisposable {
  readonly #options: FloorOptions;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  #isUnder = false;
  #said = "";

  constructor(options: FloorOptions) {
    this.#options = options;
    this.#ended = this.#run();
  }

  /** Nothing new is started meanwhile. */
  get isUnder(): boolean {
    return this.#isUnder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { clock, floorBytes, available, log } = this.#options;
    while (!this.#stop.signal.aborted) {
      const floor = floorBytes();
      const now = floor === undefined ? undefined : available();
      if (floor === undefined || now === undefined) {
        this.#isUnder = false;
        await clock.sleep(LOOK_LAST_MS, this.#stop.signal);
        continue;
      }
      this.#note(isUnderPressure(this.#isUnder, now.bytes, floor), now, floor);
      try {
        if (now.bytes < floor) await this.#act(now, floor);
      } catch (error) {
        log.error({ error: messageOf(error) }, "memory could not be given back");
      }
      await clock.sleep(lookAgainMs(available()?.bytes ?? 0, floor), this.#stop.signal);
    }
  }

  #note(isUnder: boolean, now: Available, floor: number): void {
    if (isUnder === this.#isUnder) return;
    this.#isUnder = isUnder;
    const said = { available: now.bytes, floor, source: now.source };
    if (isUnder) this.#options.log.warn(said, "memory is under the floor: nothing new is started");
    else this.#options.log.info(said, "memory is above the floor again");
  }

  async #act(now: Available, floor: number): Promise<void> {
    const { victims, whoUses, abortSwitch, log } = this.#options;
    const why = `${sizeText(now.bytes)} of memory are available, ${sizeText(floor)} are the floor; ${whoUses()}`;
    abortSwitch(why);
    const [victim] = victims();
    if (victim === undefined) {
      if (this.#said !== "nothing")
        log.error({ why }, "memory is under the floor, and nothing of ours is left to stop");
      this.#said = "nothing";
      return;
    }
    this.#said = "";
    log.error({ why, victim: victim.name }, "memory is under the floor: something of ours is stopped");
    await victim.giveUp(why);
    await this.#effect(floor);
  }

  /** The kernel counts what is freed a little later. */
  async #effect(floor: number): Promise<void> {
    const { clock, available } = this.#options;
    const until = clock.monotonicMs() + EFFECT_WAIT_MS;
    while (clock.monotonicMs() < until && !this.#stop.signal.aborted) {
      if ((available()?.bytes ?? 0) >= floor) return;
      await clock.sleep(LOOK_FIRST_MS, this.#stop.signal);
    }
  }
}
