// SPDX-License-Identifier: Apache-2.0
// The gateway: a table of fronts, each an address that apps use. Rule: it keeps its last table whatever becomes of whoever told
// it, and takes no older one; what is told is applied as a whole, one table after the other.

import type { Clock } from "../std/clock.ts";
import { type Identity, identityOf } from "../std/process.ts";
import { prometheusText } from "./counters.ts";
import { type FrontOptions, type FrontSeen, RunningFront } from "./front.ts";
import { addressText, DRAIN_MS, type Table } from "./table.ts";

export type ListenFailed = { readonly listen: string; readonly why: string };

export type Applied =
  /** failed: fronts whose port cannot be listened on; the rest of the table holds. */
  | { readonly kind: "applied"; readonly generation: number; readonly failed: readonly ListenFailed[] }
  /** A newer table is there already; this one changed nothing. */
  | { readonly kind: "stale"; readonly generation: number };

export type GatewaySeen = {
  readonly pid: number;
  /** Null when this kernel does not tell. */
  readonly identity: Identity | null;
  /** RFC 3339. */
  readonly startedAt: string;
  /** Of the last table; null before the first. */
  readonly generation: number | null;
  readonly fronts: readonly FrontSeen[];
  /** Fronts that are in no table any more and still drain. */
  readonly closing: readonly FrontSeen[];
};

export class Gateway {
  readonly #options: FrontOptions;
  readonly #startedAt: string;
  readonly #fronts = new Map<string, RunningFront>();
  readonly #closing = new Map<RunningFront, Promise<unknown>>();
  #generation: number | null = null;
  #applying: Promise<unknown> = Promise.resolve();

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#startedAt = timeText(options.clock);
  }

  /** Resolves when every front listens or has said why not. An equal generation is applied again. */
  set(table: Table, generation: number): Promise<Applied> {
    const applied = this.#applying.then(() => this.#set(table, generation));
    this.#applying = applied;
    return applied;
  }

  status(): GatewaySeen {
    return {
      pid: process.pid,
      identity: identityOf(process.pid) ?? null,
      startedAt: this.#startedAt,
      generation: this.#generation,
      fronts: [...this.#fronts.values()].map((front) => front.seen()),
      closing: [...this.#closing.keys()].map((front) => front.seen()),
    };
  }

  /** Bytes that were read and that no kernel has taken yet, of all connections. */
  get waitingBytes(): number {
    return [...this.#fronts.values()].reduce((sum, front) => sum + front.waitingBytes, 0);
  }

  /** Prometheus text. */
  metrics(): string {
    return prometheusText([...this.#fronts.values()]);
  }

  /** Stops to listen; resolves when the last connection is gone, at the latest after the drain. */
  async close(drainMs: number): Promise<void> {
    await this.#applying;
    for (const front of this.#closing.keys()) void front.close(drainMs);
    for (const listen of this.#fronts.keys()) this.#remove(listen, drainMs);
    await Promise.all(this.#closing.values());
  }

  async #set(table: Table, generation: number): Promise<Applied> {
    if (this.#generation !== null && generation < this.#generation)
      return { kind: "stale", generation: this.#generation };
    this.#generation = generation;
    const wanted = new Map(table.fronts.map((front) => [addressText(front.listen), front]));
    for (const listen of this.#fronts.keys()) if (!wanted.has(listen)) this.#remove(listen, DRAIN_MS);
    for (const [listen, front] of wanted) {
      const running = this.#fronts.get(listen);
      if (running === undefined) this.#fronts.set(listen, new RunningFront(front, this.#options));
      else running.apply(front);
    }
    await Promise.all([...this.#fronts.values()].map((front) => front.start()));
    const failed = [...this.#fronts.values()].flatMap(({ listen, listenError }) =>
      listenError === null ? [] : [{ listen, why: listenError }],
    );
    return { kind: "applied", generation, failed };
  }

  #remove(listen: string, drainMs: number): void {
    const front = this.#fronts.get(listen);
    if (front === undefined) return;
    this.#fronts.delete(listen);
    const closed = front.close(drainMs).then(() => this.#closing.delete(front));
    this.#closing.set(front, closed);
  }
}

function timeText(clock: Clock): string {
  return new Date(clock.now()).toISOString();
}
