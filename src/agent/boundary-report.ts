// SPDX-License-Identifier: Apache-2.0
// The boundary as a node tells it: its state in words, and how far its locker is, signed by the node's own key, so that what
// comes back at a hello is believed only when this very node said it.

import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { Boundary } from "../boundary/boundary.ts";
import { signText } from "../enrol/node-key.ts";
import type { Evidence } from "../locker/locker.ts";
import {
  type BoundaryEvidence,
  type BoundaryReport,
  evidenceMessage,
  type HelloReply,
} from "../protocol/agent-schema.ts";

export function reportOfBoundary(boundary: Boundary, nodeId: string, key: KeyObject): BoundaryReport {
  const { state, evidence } = boundary;
  return {
    state: state.kind,
    why: state.kind === "trusted" ? null : state.why.slice(0, 1024),
    evidence: evidence === undefined ? null : signed(evidence, nodeId, key),
  };
}

function signed(evidence: Evidence, nodeId: string, key: KeyObject): BoundaryEvidence {
  const told = {
    lineage: Buffer.from(evidence.lineage).toString("hex"),
    sequence: String(evidence.sequence),
    digest: Buffer.from(evidence.digest).toString("hex"),
  };
  return { ...told, signature: signText(key, evidenceMessage(nodeId, told)) };
}

/** What a controller tells again of it. */
export type ToldEvidence = Pick<HelloReply, "evidence" | "superseded">;

/** Only what was signed by this node. */
export function ownEvidence(
  { evidence, superseded }: ToldEvidence,
  nodeId: string,
  key: KeyObject,
): readonly Evidence[] {
  const publicKey = createPublicKey(key);
  const isOurs = (told: BoundaryEvidence): boolean =>
    verify(null, Buffer.from(evidenceMessage(nodeId, told)), publicKey, Buffer.from(told.signature, "base64url"));
  const read = (told: BoundaryEvidence, isSuperseded: boolean): Evidence => ({
    lineage: Buffer.from(told.lineage, "hex"),
    sequence: BigInt(told.sequence),
    digest: Buffer.from(told.digest, "hex"),
    isSuperseded,
  });
  return [
    ...(evidence === null || !isOurs(evidence) ? [] : [read(evidence, false)]),
    ...superseded.filter(isOurs).map((told) => read(told, true)),
  ];
}
