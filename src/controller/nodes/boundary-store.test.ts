// SPDX-License-Identifier: Apache-2.0
// Evidence of a node's locker in the order in which it comes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type BoundaryEvidence, SUPERSEDED_MAX } from "../../protocol/agent-schema.ts";
import { type Told, withEvidence } from "./boundary-store.ts";

const of = (lineage: string, sequence: number): BoundaryEvidence => ({
  lineage: lineage.padStart(32, "0"),
  sequence: String(sequence),
  digest: "0".repeat(64),
  signature: "a".repeat(86),
});

const after = (...given: readonly (BoundaryEvidence | null)[]): Told =>
  given.reduce(withEvidence, { evidence: null, superseded: [] } as Told);

test("P10: evidence of one lineage never goes back, and one that was superseded never returns", () => {
  const a = [of("a", 9), of("a", 10)] as const;
  const b = of("b", 1);
  assert.deepEqual(after(null), { evidence: null, superseded: [] });
  assert.deepEqual(after(a[1], a[0], null), { evidence: a[1], superseded: [] });
  assert.deepEqual(after(...a, b), { evidence: b, superseded: [a[1]] });
  assert.deepEqual(after(...a, b, of("a", 99)), { evidence: b, superseded: [a[1]] });
});

test("only the latest lineages are remembered", () => {
  const many = Array.from({ length: SUPERSEDED_MAX + 3 }, (_, index) => of(index.toString(16), 1));
  const { evidence, superseded } = after(...many);
  assert.deepEqual(evidence, many.at(-1));
  assert.deepEqual(superseded, many.slice(2, -1));
});
