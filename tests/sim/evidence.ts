// SPDX-License-Identifier: Apache-2.0
// What others remember of a node's locker: the last evidence of each lineage, in the order in which they came.

import type { Evidence } from "../../src/locker/locker.ts";

export class RememberedEvidence {
  readonly #last = new Map<string, Evidence>();

  hear(evidence: Evidence): void {
    const key = Buffer.from(evidence.lineage).toString("hex");
    const known = this.#last.get(key);
    if (known === undefined || known.sequence < evidence.sequence) this.#last.set(key, evidence);
  }

  knows(lineage: Uint8Array): boolean {
    return this.#last.has(Buffer.from(lineage).toString("hex"));
  }

  get all(): readonly Evidence[] {
    const all = [...this.#last.values()];
    return all.map((evidence, index) => ({ ...evidence, isSuperseded: index < all.length - 1 }));
  }
}
