// SPDX-License-Identifier: Apache-2.0
// The boundary as a node tells it: its state in words, and how far its locker is, signed by the node's own key, so that what
// comes back at a hello is believed only when this very node said it.

import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { Boundary } from "../boundary/boundary.ts";
import { signText } from "../enrol/node-key.ts";
import type { Evidence } from "../locker/locker.ts";
import { type BoundaryEvidence, type BoundaryReport, evidenceMessage } from "../protocol/agent-schema.ts";

export function reportOfBoundary(boundary: Boundary, nodeId: string, key: KeyObject): BoundaryReport {
  const { state, evidence } = boundary;
  return {
    state: state.kind,
    why: state.kind === "trusted" ? null : state.why.slice(0, 1024),
    evidence: evidence === undefined ? null : signed(evidence, nodeId, key),
  };
}

function signed(evidence: Evidence, nodeId: string, key: KeyObject): BoundaryEvidence {
  const lineage = Buffer.from(evidence.lineage).toString("hex");
  const sequence = String(evidence.sequence);
  return { lineage, sequence, signature: signText(key, evidenceMessage(nodeId, lineage, sequence)) };
}

/** None when it was not signed by this node. */
export function ownEvidence(given: BoundaryEvidence | null, nodeId: string, key: KeyObject): readonly Evidence[] {
  if (given === null) return [];
  const message = Buffer.from(evidenceMessage(nodeId, given.lineage, given.sequence));
  const isOurs = verify(null, message, createPublicKey(key), Buffer.from(given.signature, "base64url"));
  return isOurs ? [{ lineage: Buffer.from(given.lineage, "hex"), sequence: BigInt(given.sequence) }] : [];
}
