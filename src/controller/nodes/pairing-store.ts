// SPDX-License-Identifier: Apache-2.0
// Pairing codes: single use, short-lived, bound to a name and an organisation, hashed at rest. The same key may repeat
// its pairing while the code lives (its answer was lost); another key is refused. The database enforces single use.

import { createHash } from "node:crypto";
import { type Pairing, PHASES_MAX, type PhaseReport } from "../../protocol/enrol-schema.ts";
import type { Tx } from "../../db/pool.ts";
import type { CredentialId, NodeId, OrganisationId, PairingId } from "../../std/ids.ts";

export type NewCode = {
  readonly organisationId: OrganisationId;
  readonly id: PairingId;
  readonly name: string;
  readonly hash: Buffer;
  readonly lifeMs: number;
  /** The node that the new machine takes the place of. */
  readonly takesOver: NodeId | null;
};

/** Undefined when a node that is not retired has the name already and is not the one to be taken over. */
export async function insertPairingCode(tx: Tx, code: NewCode): Promise<{ readonly expiresAt: string } | undefined> {
  const row = await tx.maybeOne<{ expires_at: Date }>(
    `insert into app.pairing_code (organisation_id, id, name, hash, expires_at, takes_over)
     select $1, $2, $3, $4, now() + $5 * interval '1 millisecond', $6
      where not exists (select 1 from app.node where name = $3 and status <> 'retired' and id is distinct from $6)
     returning expires_at`,
    [code.organisationId, code.id, code.name, code.hash, code.lifeMs, code.takesOver],
  );
  return row === undefined ? undefined : { expiresAt: row.expires_at.toISOString() };
}

export type FoundCode = {
  readonly organisationId: OrganisationId;
  readonly organisationName: string;
  readonly id: PairingId;
  readonly isExpired: boolean;
};

/** Which organisation a code belongs to. Service role; nothing is decided on it but where to look. */
export async function findPairingCode(tx: Tx, hash: Buffer): Promise<FoundCode | undefined> {
  const row = await tx.maybeOne<{ organisation_id: OrganisationId; name: string; id: PairingId; is_expired: boolean }>(
    `select p.organisation_id, o.name, p.id, p.expires_at <= now() as is_expired
       from app.pairing_code p join app.organisation o on o.id = p.organisation_id where p.hash = $1`,
    [hash],
  );
  if (row === undefined) return undefined;
  return { organisationId: row.organisation_id, organisationName: row.name, id: row.id, isExpired: row.is_expired };
}

export type Enrolling = {
  readonly organisationId: OrganisationId;
  readonly pairingId: PairingId;
  /** Of the node that is made when the code takes none over. */
  readonly nodeId: NodeId;
  readonly credentialId: CredentialId;
  readonly publicKey: Buffer;
  readonly credentialHash: Buffer;
  readonly scopes: readonly string[];
  readonly address: string;
};

export type Enrolled =
  | { readonly kind: "enrolled" | "repeated" | "taken-over"; readonly nodeId: NodeId; readonly name: string }
  | { readonly kind: "used" }
  | { readonly kind: "expired" };

type CodeRow = {
  readonly name: string;
  readonly is_expired: boolean;
  readonly node_id: NodeId | null;
  readonly takes_over: NodeId | null;
  readonly is_same: boolean;
};

/** Makes node and credential and burns the code, in one transaction under the code's row lock. */
export async function enrol(tx: Tx, enrolling: Enrolling): Promise<Enrolled> {
  const { organisationId, pairingId, publicKey, credentialHash } = enrolling;
  const code = await tx.one<CodeRow>(
    `select name, expires_at <= now() as is_expired, node_id, takes_over,
            coalesce(used_public_key = $2 and used_credential_hash = $3, false) as is_same
       from app.pairing_code where id = $1 for update`,
    [pairingId, publicKey, credentialHash],
  );
  if (code.node_id !== null && (!code.is_same || code.is_expired)) return { kind: "used" };
  if (code.node_id !== null) return { kind: "repeated", nodeId: code.node_id, name: code.name };
  if (code.is_expired) return { kind: "expired" };
  const isTakenOver = code.takes_over !== null && (await takeOver(tx, code.takes_over, publicKey));
  const nodeId = isTakenOver && code.takes_over !== null ? code.takes_over : enrolling.nodeId;
  if (!isTakenOver) {
    await tx.query("insert into app.node (organisation_id, id, name, public_key) values ($1, $2, $3, $4)", [
      organisationId,
      nodeId,
      code.name,
      publicKey,
    ]);
  }
  await tx.query(
    `insert into app.credential (organisation_id, id, kind, name, node_id, hash, scopes) values ($1, $2, 'node', $3, $4, $5, $6)`,
    [organisationId, enrolling.credentialId, code.name, nodeId, credentialHash, enrolling.scopes],
  );
  await tx.query(
    `update app.pairing_code set used_at = now(), used_public_key = $2, used_credential_hash = $3, node_id = $4, used_from = $5
      where id = $1 and used_at is null`,
    [pairingId, publicKey, credentialHash, nodeId, enrolling.address],
  );
  return { kind: isTakenOver ? "taken-over" : "enrolled", nodeId, name: code.name };
}

/**
 * The machine behind a node is another one from here on: its key is new, every older credential ends, and what the old
 * machine once wrote in its locker is not expected of the new one. False when the node is retired by now: a new one is made.
 */
async function takeOver(tx: Tx, nodeId: NodeId, publicKey: Buffer): Promise<boolean> {
  const { count } = await tx.query(
    `update app.node
        set public_key = $2, session_id = null, session_at = null, rival_at = null, offered_credential_id = null,
            rotation_requested_at = null, boundary_state = null, boundary_why = null, boundary_evidence = null,
            boundary_superseded = case when boundary_evidence is null then boundary_superseded
                                       else boundary_superseded || jsonb_build_array(boundary_evidence) end
      where id = $1 and status <> 'retired'`,
    [nodeId, publicKey],
  );
  if (count === 0) return false;
  await tx.query("update app.credential set revoked_at = now() where node_id = $1 and revoked_at is null", [nodeId]);
  return true;
}

/** What the script reported, oldest first; the last place is written over when there are too many. */
export async function addPhase(tx: Tx, pairingId: PairingId, report: PhaseReport): Promise<void> {
  await tx.query(
    `update app.pairing_code
        set phases = (case when jsonb_array_length(phases) < ${PHASES_MAX} then phases else phases - (${PHASES_MAX} - 1) end)
                     || jsonb_build_array(jsonb_build_object('phase', $2::text, 'outcome', $3::text, 'detail', $4::text,
                          'at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
      where id = $1`,
    [pairingId, report.phase, report.outcome, report.detail],
  );
}

type PairingRow = {
  readonly id: PairingId;
  readonly name: string;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly is_expired: boolean;
  readonly used_at: Date | null;
  readonly used_from: string | null;
  readonly used_public_key: Buffer | null;
  readonly node_id: NodeId | null;
  readonly takes_over: NodeId | null;
  readonly phases: Pairing["phases"];
};

/** The newest first; with an id that one alone. */
export async function listPairings(tx: Tx, limit: number, id?: string): Promise<readonly Pairing[]> {
  const { rows } = await tx.query<PairingRow>(
    `select id, name, created_at, expires_at, expires_at <= now() as is_expired, used_at, used_from, used_public_key, node_id,
            takes_over, phases
       from app.pairing_code where $2::text is null or id = $2 order by id desc limit $1`,
    [limit, id ?? null],
  );
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    state: row.node_id !== null ? "paired" : row.is_expired ? "expired" : "waiting",
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at.toISOString(),
    usedAt: row.used_at?.toISOString() ?? null,
    usedFrom: row.used_from,
    keyFingerprint: row.used_public_key === null ? null : keyFingerprint(row.used_public_key),
    nodeId: row.node_id,
    takesOver: row.takes_over,
    phases: row.phases,
  }));
}

/** SHA-256 over the raw public key, hexadecimal. */
export function keyFingerprint(publicKey: Uint8Array): string {
  return createHash("sha256").update(publicKey).digest("hex");
}
