// SPDX-License-Identifier: Apache-2.0
// One upstream of a front, its proof and the connections that go to it:
//   current ──the front gets another target──► draining ──last connection gone, or the drain ends──► gone
// Rule: while it drains, idle connections are closed, busy ones go on, unused ones go back; after the drain what is left is reset.

import { canonicalJson } from "../std/json.ts";
import type { Connection } from "./connection.ts";
import type { Counters } from "./counters.ts";
import { Proof, type ProofOptions } from "./proof.ts";
import type { Upstream } from "./table.ts";

export class Backend {
  readonly upstream: Upstream;
  readonly proof: Proof;
  readonly connections = new Set<Connection>();
  readonly #counters: Counters;
  #drainEnd: NodeJS.Timeout | undefined;
  #onGone: (() => void) | undefined;

  constructor(options: ProofOptions, counters: Counters) {
    this.upstream = options.upstream;
    this.proof = new Proof(options);
    this.#counters = counters;
  }

  /** Whether it is exactly this: model, place, process and marker. */
  is(upstream: Upstream): boolean {
    return canonicalJson(upstream) === canonicalJson(this.upstream);
  }

  get isDraining(): boolean {
    return this.#onGone !== undefined;
  }

  /** The connections that go back were unused. onGone: its last connection is gone. */
  drain(drainMs: number, onGone: () => void): readonly Connection[] {
    this.#onGone = onGone;
    const unused = [...this.connections].filter((connection) => connection.isUnused);
    for (const connection of unused) {
      this.connections.delete(connection);
      connection.giveBack();
    }
    for (const connection of this.connections) {
      if (connection.isIdle) this.#counters.closedIdle++;
      connection.drain();
    }
    clearTimeout(this.#drainEnd);
    this.#drainEnd = setTimeout(() => this.#cut(), drainMs);
    this.#settle();
    return unused;
  }

  /** It is the current one again. */
  keep(): void {
    clearTimeout(this.#drainEnd);
    this.#onGone = undefined;
    for (const connection of this.connections) connection.keep();
    this.proof.nudge();
  }

  leave(connection: Connection): void {
    this.connections.delete(connection);
    this.#settle();
  }

  #cut(): void {
    this.#counters.cut += this.connections.size;
    for (const connection of this.connections) connection.reset();
  }

  #settle(): void {
    const onGone = this.#onGone;
    if (onGone === undefined || this.connections.size > 0) return;
    clearTimeout(this.#drainEnd);
    void this.proof[Symbol.asyncDispose]();
    onGone();
  }
}
