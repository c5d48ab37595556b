// SPDX-License-Identifier: Apache-2.0
// What a node says of its boundary, and what it is told again at its next hello. Rule: evidence of one lineage never goes back,
// and a lineage that another one took the place of never becomes the present one again.

import { isDeepStrictEqual } from "node:util";
import { type BoundaryEvidence, type BoundaryReport, SUPERSEDED_MAX } from "../../protocol/agent-schema.ts";
import type { Tx } from "../../db/pool.ts";
import type { NodeId } from "../../std/ids.ts";

/** evidence: the newest that the node sent; superseded: the last of each earlier lineage, oldest first. */
export type Told = { readonly evidence: BoundaryEvidence | null; readonly superseded: BoundaryEvidence[] };

/** What is known once the node has sent this, pure. */
export function withEvidence(told: Told, given: BoundaryEvidence | null): Told {
  const { evidence, superseded } = told;
  if (given === null || superseded.some(({ lineage }) => lineage === given.lineage)) return told;
  if (evidence === null) return { evidence: given, superseded };
  if (evidence.lineage !== given.lineage)
    return { evidence: given, superseded: [...superseded, evidence].slice(-SUPERSEDED_MAX) };
  return BigInt(given.sequence) > BigInt(evidence.sequence) ? { evidence: given, superseded } : told;
}

type Row = {
  readonly boundary_state: BoundaryReport["state"] | null;
  readonly boundary_why: string | null;
  readonly boundary_evidence: BoundaryEvidence | null;
  readonly boundary_superseded: BoundaryEvidence[];
};

async function read(tx: Tx, id: NodeId, lock: "" | "for no key update"): Promise<Row | undefined> {
  return tx.maybeOne<Row>(
    `select boundary_state, boundary_why, boundary_evidence, boundary_superseded from app.node where id = $1 ${lock}`,
    [id],
  );
}

const toldOf = (row: Row | undefined): Told => ({
  evidence: row?.boundary_evidence ?? null,
  superseded: row?.boundary_superseded ?? [],
});

/** Written, and the row locked, only when it changed: it comes with every heartbeat. */
export async function writeBoundary(tx: Tx, id: NodeId, report: BoundaryReport | undefined): Promise<void> {
  if (report === undefined || isKnown(await read(tx, id, ""), report)) return;
  const { evidence, superseded } = withEvidence(toldOf(await read(tx, id, "for no key update")), report.evidence);
  await tx.query(
    `update app.node set boundary_state = $2, boundary_why = $3, boundary_evidence = $4, boundary_superseded = $5
      where id = $1`,
    [id, report.state, report.why, evidence === null ? null : JSON.stringify(evidence), JSON.stringify(superseded)],
  );
}

function isKnown(row: Row | undefined, { state, why, evidence }: BoundaryReport): boolean {
  if (row === undefined || row.boundary_state !== state || row.boundary_why !== why) return false;
  const told = toldOf(row);
  return isDeepStrictEqual(withEvidence(told, evidence), told);
}

/** What the node once sent. */
export async function readEvidence(tx: Tx, id: NodeId): Promise<Told> {
  return toldOf(await read(tx, id, ""));
}
