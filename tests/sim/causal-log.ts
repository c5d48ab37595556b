// SPDX-License-Identifier: Apache-2.0
// A simulated message log: who knew of what when it spoke, over all nodes, and the part of it that this node has. The ordering
// port of the boundary is answered from that part only.

import type { Ordering, OrderingPort } from "../../src/boundary/admission.ts";
import type { Chance } from "./chance.ts";

export type Message = { readonly hash: Uint8Array; readonly network: number; readonly below: ReadonlySet<string> };

const keyOf = (hash: Uint8Array): string => Buffer.from(hash).toString("latin1");

export class CausalLog {
  readonly #chance: Chance;
  readonly #all = new Map<string, Message>();
  /** What this node has. */
  readonly #known = new Set<string>();

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** A message of somebody who knows some of what was said, or all. */
  say(network: number, knows: "some" | "all"): Message {
    const below = new Set<string>();
    for (const [key, message] of this.#all) {
      if (message.network !== network || (knows === "some" && this.#chance.happens(0.6))) continue;
      below.add(key);
      for (const each of message.below) below.add(each);
    }
    return this.#add(network, below);
  }

  /** A message of this node: it knows what its log has. */
  sayOwn(network: number): Message {
    const below = new Set<string>();
    for (const key of this.#known) {
      const message = this.#all.get(key);
      if (message?.network !== network) continue;
      below.add(key);
      for (const each of message.below) below.add(each);
    }
    const message = this.#add(network, below);
    this.learn(message);
    return message;
  }

  #add(network: number, below: ReadonlySet<string>): Message {
    const message = { hash: this.#chance.bytes(32), network, below };
    this.#all.set(keyOf(message.hash), message);
    return message;
  }

  /** With all that it rests on. */
  learn(message: Message): void {
    this.#known.add(keyOf(message.hash));
    for (const key of message.below) this.#known.add(key);
  }

  hasHistory(network: number): boolean {
    return [...this.#all.values()].some((message) => message.network === network);
  }

  /** The log of this node is gone; what it learns again comes with what it rests on only by chance. */
  lose(): void {
    for (const key of this.#known) if (this.#chance.happens(0.7)) this.#known.delete(key);
  }

  readonly order: OrderingPort = (a, b): Ordering => {
    const [one, other] = [keyOf(a), keyOf(b)];
    if (one === other) return "equal";
    if (!this.#known.has(one) || !this.#known.has(other)) return "unknown";
    if (this.#all.get(one)?.below.has(other) === true) return "dominates";
    return this.#all.get(other)?.below.has(one) === true ? "below" : "concurrent";
  };
}
