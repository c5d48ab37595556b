// SPDX-License-Identifier: Apache-2.0
// Credentials in the database: looked up by hash before the organisation is known (service role), made and revoked inside it.

import type { Credential, Scope, Token } from "../../protocol/access-schema.ts";
import { type PeopleScope, roleScopes, type UserRole } from "../../protocol/user.ts";
import { Failure } from "../../std/errors.ts";
import type { Tx } from "../../db/pool.ts";
import type { CredentialId, NodeId, OrganisationId, UserId } from "../../std/ids.ts";
import type { Caller } from "./credential.ts";

type FoundRow = {
  readonly organisation_id: OrganisationId;
  readonly organisation_name: string;
  readonly id: CredentialId;
  readonly kind: "token" | "browser" | "node";
  readonly user_id: UserId | null;
  readonly user_name: string | null;
  readonly role: UserRole | null;
  readonly has_password: boolean;
  readonly node_id: NodeId | null;
  readonly node_name: string | null;
  readonly scopes: readonly Scope[];
  readonly expires_at: Date | null;
  readonly is_stale: boolean;
  readonly is_offered: boolean;
};

export type Found = {
  readonly caller: Caller;
  /** Its last use was noted long ago. */
  readonly isStale: boolean;
  /** A node uses for the first time what it offered in place of its old credential. */
  readonly isOffered: boolean;
};

/** The caller behind a secret's hash; undefined when there is none, or it has expired or was revoked. Service role. */
export async function findCaller(tx: Tx, hash: Buffer): Promise<Found | undefined> {
  const row = await tx.maybeOne<FoundRow>(
    `select c.organisation_id, o.name as organisation_name, c.id, c.kind, c.user_id, u.name as user_name, u.role,
            p.user_id is not null as has_password, c.node_id, n.name as node_name, c.scopes, c.expires_at,
            coalesce(c.last_used_at < now() - interval '1 minute', true) as is_stale,
            coalesce(n.offered_credential_id = c.id, false) as is_offered
       from app.credential c
       join app.organisation o on o.id = c.organisation_id
       left join app."user" u on u.organisation_id = c.organisation_id and u.id = c.user_id
       left join app.password p on p.organisation_id = c.organisation_id and p.user_id = c.user_id
       left join app.node n on n.organisation_id = c.organisation_id and n.id = c.node_id
      where c.hash = $1 and c.revoked_at is null and (c.expires_at is null or c.expires_at > now()) and u.disabled_at is null`,
    [hash],
  );
  if (row === undefined) return undefined;
  const caller = callerOf(row);
  return caller === undefined ? undefined : { caller, isStale: row.is_stale, isOffered: row.is_offered };
}

function callerOf(row: FoundRow): Caller | undefined {
  const shared = {
    organisationId: row.organisation_id,
    organisationName: row.organisation_name,
    credentialId: row.id,
  };
  if (row.node_id !== null)
    return { kind: "node", ...shared, scopes: row.scopes, nodeId: row.node_id, nodeName: row.node_name ?? "" };
  if (row.user_id === null || row.role === null || row.kind === "node") return undefined;
  const mayHave: readonly Scope[] = roleScopes[row.role];
  return {
    kind: "people",
    ...shared,
    scopes: row.scopes.filter((scope): scope is PeopleScope => mayHave.includes(scope)),
    userId: row.user_id,
    userName: row.user_name ?? "",
    role: row.role,
    hasPassword: row.has_password,
    credentialKind: row.kind,
    expiresAt: row.expires_at?.toISOString() ?? null,
    csrfToken: null,
  };
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

type CredentialRow = TokenRow & {
  readonly kind: Credential["kind"];
  readonly user_id: UserId | null;
  readonly user_name: string | null;
  readonly node_id: NodeId | null;
  readonly node_name: string | null;
};

const SELECT_CREDENTIAL = `
  select c.id, c.kind, c.name, c.user_id, u.name as user_name, c.node_id, n.name as node_name, c.scopes, c.created_at,
         c.expires_at, c.last_used_at, c.revoked_at
    from app.credential c
    left join app."user" u on u.organisation_id = c.organisation_id and u.id = c.user_id
    left join app.node n on n.organisation_id = c.organisation_id and n.id = c.node_id`;

function credentialFromRow(row: CredentialRow): Credential {
  return {
    ...fromRow(row),
    kind: row.kind,
    userId: row.user_id,
    userName: row.user_name,
    nodeId: row.node_id,
    nodeName: row.node_name,
  };
}

/** Those that work first; what was revoked or has expired long ago is left out by the limit. */
export async function listCredentials(tx: Tx): Promise<readonly Credential[]> {
  const { rows } = await tx.query<CredentialRow>(
    `${SELECT_CREDENTIAL}
      order by c.revoked_at is not null, coalesce(c.expires_at < now(), false), c.id desc limit 1000`,
    [],
  );
  return rows.map(credentialFromRow);
}

export type Revoked =
  | { readonly kind: "revoked" | "already" | "of-node"; readonly credential: Credential }
  | { readonly kind: "unknown" };

/** Of a token or a browser; a node's goes with its node. */
export async function revokeCredential(tx: Tx, id: string): Promise<Revoked> {
  const { count } = await tx.query(
    "update app.credential set revoked_at = now() where id = $1 and kind <> 'node' and revoked_at is null",
    [id],
  );
  const row = await tx.maybeOne<CredentialRow>(`${SELECT_CREDENTIAL} where c.id = $1`, [id]);
  if (row === undefined) return { kind: "unknown" };
  const credential = credentialFromRow(row);
  if (row.kind === "node") return { kind: "of-node", credential };
  return { kind: count === 1 ? "revoked" : "already", credential };
}

export type NewBrowser = {
  readonly organisationId: OrganisationId;
  readonly id: CredentialId;
  readonly userId: UserId;
  /** What it is, for a list of browsers. */
  readonly name: string;
  readonly hash: Buffer;
  readonly scopes: readonly PeopleScope[];
  readonly lifeMs: number;
};

/** Needs the scope sign-in. Returns when it expires. */
export async function insertBrowser(tx: Tx, browser: NewBrowser): Promise<string> {
  const row = await tx.one<{ expires_at: Date }>(
    `insert into app.credential (organisation_id, id, kind, name, user_id, hash, scopes, expires_at)
     values ($1, $2, 'browser', $3, $4, $5, $6, now() + $7 * interval '1 millisecond') returning expires_at`,
    [browser.organisationId, browser.id, browser.name, browser.userId, browser.hash, browser.scopes, browser.lifeMs],
  );
  return row.expires_at.toISOString();
}

/** Ends every browser of a user but the one that is kept; returns how many. */
export async function revokeBrowsers(tx: Tx, userId: string, keep: CredentialId | null): Promise<number> {
  const { count } = await tx.query(
    `update app.credential set revoked_at = now()
      where user_id = $1 and kind = 'browser' and revoked_at is null and expires_at > now() and id is distinct from $2`,
    [userId, keep],
  );
  return count;
}
