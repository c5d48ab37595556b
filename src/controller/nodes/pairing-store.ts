// SPDX-License-Identifier: Apache-2.0
// Pairing codes: single use, short-lived, bound to a name and an organisation, hashed at rest. The same key may repeat
// its pairing while the code lives (its answer was lost); another key is refused. The database enforces single use.

import type { Tx } from "../../db/pool.ts";
import type { CredentialId, NodeId, OrganisationId, PairingId } from "../../std/ids.ts";

export type NewCode = {
  readonly organisationId: OrganisationId;
  readonly id: PairingId;
  readonly name: string;
  readonly hash: Buffer;
  readonly lifeMs: number;
};

/** Undefined when a node that is not retired has the name already. */
export async function insertPairingCode(tx: Tx, code: NewCode): Promise<{ readonly expiresAt: string } | undefined> {
  const row = await tx.maybeOne<{ expires_at: Date }>(
    `insert into app.pairing_code (organisation_id, id, name, hash, expires_at)
     select $1, $2, $3, $4, now() + $5 * interval '1 millisecond'
      where not exists (select 1 from app.node where name = $3 and status <> 'retired')
     returning expires_at`,
    [code.organisationId, code.id, code.name, code.hash, code.lifeMs],
  );
  return row === undefined ? undefined : { expiresAt: row.expires_at.toISOString() };
}

export type FoundCode = {
  readonly organisationId: OrganisationId;
  readonly organisationName: string;
  readonly id: PairingId;
};

/** Which organisation a code belongs to. Service role; nothing is decided on it but where to look. */
export async function findPairingCode(tx: Tx, hash: Buffer): Promise<FoundCode | undefined> {
  const row = await tx.maybeOne<{ organisation_id: OrganisationId; name: string; id: PairingId }>(
    `select p.organisation_id, o.name, p.id from app.pairing_code p join app.organisation o on o.id = p.organisation_id where p.hash = $1`,
    [hash],
  );
  return row === undefined
    ? undefined
    : { organisationId: row.organisation_id, organisationName: row.name, id: row.id };
}

export type Enrolment = {
  readonly organisationId: OrganisationId;
  readonly pairingId: PairingId;
  readonly nodeId: NodeId;
  readonly credentialId: CredentialId;
  readonly publicKey: Buffer;
  readonly credentialHash: Buffer;
  readonly scopes: readonly string[];
};

export type Enrolled =
  | { readonly kind: "enrolled" | "repeated"; readonly nodeId: NodeId; readonly name: string }
  | { readonly kind: "used" }
  | { readonly kind: "expired" };

type CodeRow = {
  readonly name: string;
  readonly is_expired: boolean;
  readonly node_id: NodeId | null;
  readonly is_same: boolean;
};

/** Makes node and credential and burns the code, in one transaction under the code's row lock. */
export async function enrol(tx: Tx, enrolment: Enrolment): Promise<Enrolled> {
  const { organisationId, pairingId, nodeId, publicKey, credentialHash } = enrolment;
  const code = await tx.one<CodeRow>(
    `select name, expires_at <= now() as is_expired, node_id,
            coalesce(used_public_key = $2 and used_credential_hash = $3, false) as is_same
       from app.pairing_code where id = $1 for update`,
    [pairingId, publicKey, credentialHash],
  );
  if (code.node_id !== null && (!code.is_same || code.is_expired)) return { kind: "used" };
  if (code.node_id !== null) return { kind: "repeated", nodeId: code.node_id, name: code.name };
  if (code.is_expired) return { kind: "expired" };
  await tx.query("insert into app.node (organisation_id, id, name, public_key) values ($1, $2, $3, $4)", [
    organisationId,
    nodeId,
    code.name,
    publicKey,
  ]);
  await tx.query(
    `insert into app.credential (organisation_id, id, kind, name, node_id, hash, scopes) values ($1, $2, 'node', $3, $4, $5, $6)`,
    [organisationId, enrolment.credentialId, code.name, nodeId, credentialHash, enrolment.scopes],
  );
  await tx.query(
    `update app.pairing_code set used_at = now(), used_public_key = $2, used_credential_hash = $3, node_id = $4
      where id = $1 and used_at is null`,
    [pairingId, publicKey, credentialHash, nodeId],
  );
  return { kind: "enrolled", nodeId, name: code.name };
}
