// SPDX-License-Identifier: Apache-2.0
// Credentials in the database: looked up by hash before the organisation is known (service role), made and revoked inside it.

import type { PeopleScope, Scope, Token } from "../../protocol/access-schema.ts";
import { Failure } from "../../std/errors.ts";
import type { Tx } from "../../db/pool.ts";
import type { CredentialId, NodeId, OrganisationId, UserId } from "../../std/ids.ts";
import type { Caller } from "./credential.ts";

type FoundRow = {
  readonly organisation_id: OrganisationId;
  readonly organisation_name: string;
  readonly id: CredentialId;
  readonly kind: "token" | "node";
  readonly user_id: UserId | null;
  readonly node_id: NodeId | null;
  readonly node_name: string | null;
  readonly scopes: readonly Scope[];
  readonly is_stale: boolean;
};

/** The caller behind a secret's hash; undefined when there is none, or it has expired or was revoked. Service role. */
export async function findCaller(tx: Tx, hash: Buffer): Promise<{ caller: Caller; isStale: boolean } | undefined> {
  const row = await tx.maybeOne<FoundRow>(
    `select c.organisation_id, o.name as organisation_name, c.id, c.kind, c.user_id, c.node_id, n.name as node_name, c.scopes,
            coalesce(c.last_used_at < now() - interval '1 minute', true) as is_stale
       from app.credential c
       join app.organisation o on o.id = c.organisation_id
       left join app.node n on n.organisation_id = c.organisation_id and n.id = c.node_id
      where c.hash = $1 and c.revoked_at is null and (c.expires_at is null or c.expires_at > now())`,
    [hash],
  );
  if (row === undefined) return undefined;
  const shared = {
    organisationId: row.organisation_id,
    organisationName: row.organisation_name,
    credentialId: row.id,
    scopes: row.scopes,
  };
  if (row.node_id !== null) {
    return {
      caller: { kind: "node", ...shared, nodeId: row.node_id, nodeName: row.node_name ?? "" },
      isStale: row.is_stale,
    };
  }
  if (row.user_id === null) return undefined;
  return { caller: { kind: "people", ...shared, userId: row.user_id }, isStale: row.is_stale };
}

/** For what goes on after its request was let in: a revocation or expiry ends long polls and live tails. */
export async function requireValid(tx: Tx, id: CredentialId): Promise<void> {
  const row = await tx.maybeOne(
    "select 1 from app.credential where id = $1 and revoked_at is null and (expires_at is null or expires_at > now())",
    [id],
  );
  if (row === undefined) throw new Failure("unauthenticated", "the credential has expired or was revoked");
}

/** At most once a minute for each credential: a row that changes with every request would bloat. Service role. */
export async function touchCredential(tx: Tx, organisationId: OrganisationId, id: CredentialId): Promise<void> {
  await tx.query("update app.credential set last_used_at = now() where organisation_id = $1 and id = $2", [
    organisationId,
    id,
  ]);
}

type TokenRow = {
  readonly id: CredentialId;
  readonly name: string;
  readonly scopes: readonly PeopleScope[];
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly last_used_at: Date | null;
  readonly revoked_at: Date | null;
};

function fromRow(row: TokenRow): Token {
  return {
    id: row.id,
    name: row.name,
    scopes: [...row.scopes],
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at?.toISOString() ?? null,
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
    revokedAt: row.revoked_at?.toISOString() ?? null,
  };
}

const TOKEN_COLUMNS = "id, name, scopes, created_at, expires_at, last_used_at, revoked_at";

export type NewToken = {
  readonly organisationId: OrganisationId;
  readonly id: CredentialId;
  readonly name: string;
  readonly userId: UserId;
  readonly hash: Buffer;
  readonly scopes: readonly PeopleScope[];
  readonly expiresInDays: number | undefined;
};

export async function insertToken(tx: Tx, token: NewToken): Promise<Token> {
  const row = await tx.one<TokenRow>(
    `insert into app.credential (organisation_id, id, kind, name, user_id, hash, scopes, expires_at)
     values ($1, $2, 'token', $3, $4, $5, $6, now() + make_interval(days => $7::int))
     returning ${TOKEN_COLUMNS}`,
    [token.organisationId, token.id, token.name, token.userId, token.hash, token.scopes, token.expiresInDays ?? null],
  );
  return fromRow(row);
}

export async function listTokens(tx: Tx): Promise<readonly Token[]> {
  const { rows } = await tx.query<TokenRow>(
    `select ${TOKEN_COLUMNS} from app.credential where kind = 'token' order by revoked_at is not null, id desc limit 1000`,
    [],
  );
  return rows.map(fromRow);
}

export type Revoked =
  | { readonly kind: "revoked"; readonly token: Token }
  | { readonly kind: "already" }
  | { readonly kind: "unknown" };

export async function revokeToken(tx: Tx, id: string): Promise<Revoked> {
  const row = await tx.maybeOne<TokenRow>(
    `update app.credential set revoked_at = now() where id = $1 and kind = 'token' and revoked_at is null returning ${TOKEN_COLUMNS}`,
    [id],
  );
  if (row !== undefined) return { kind: "revoked", token: fromRow(row) };
  const present = await tx.maybeOne("select 1 from app.credential where id = $1 and kind = 'token'", [id]);
  return { kind: present === undefined ? "unknown" : "already" };
}
