// SPDX-License-Identifier: Apache-2.0
// The people of an organisation, their passwords and their login links. Only the service role reads a hash, and only to
// look up or verify; a link is burned by the statement that finds it unused.

import type { User } from "../../protocol/user-schema.ts";
import type { UserFacts, UserRole } from "../../protocol/user.ts";
import type { Tx } from "../../db/pool.ts";
import type { LinkId, OrganisationId, UserId } from "../../std/ids.ts";

type UserRow = {
  readonly id: UserId;
  readonly name: string;
  readonly role: UserRole;
  readonly has_password: boolean;
  readonly created_at: Date;
  readonly disabled_at: Date | null;
  readonly last_seen_at: Date | null;
};

function fromRow(row: UserRow): User {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    hasPassword: row.has_password,
    createdAt: row.created_at.toISOString(),
    disabledAt: row.disabled_at?.toISOString() ?? null,
    lastSeenAt: row.last_seen_at?.toISOString() ?? null,
  };
}

const SELECT_USER = `
  select u.id, u.name, u.role, p.user_id is not null as has_password, u.created_at, u.disabled_at,
         (select max(last_used_at) from app.credential c where c.organisation_id = u.organisation_id and c.user_id = u.id) as last_seen_at
    from app."user" u
    left join (select organisation_id, user_id from app.password) p on p.organisation_id = u.organisation_id and p.user_id = u.id`;

export async function listUsers(tx: Tx): Promise<readonly User[]> {
  const { rows } = await tx.query<UserRow>(`${SELECT_USER} order by u.disabled_at is not null, u.name limit 10000`, []);
  return rows.map(fromRow);
}

export async function findUser(tx: Tx, id: string): Promise<User | undefined> {
  const row = await tx.maybeOne<UserRow>(`${SELECT_USER} where u.id = $1`, [id]);
  return row === undefined ? undefined : fromRow(row);
}

export type NewUser = {
  readonly organisationId: OrganisationId;
  readonly id: UserId;
  readonly name: string;
  readonly role: UserRole;
};

export async function insertUser(tx: Tx, user: NewUser): Promise<void> {
  await tx.query(`insert into app."user" (organisation_id, id, name, role) values ($1, $2, $3, $4)`, [
    user.organisationId,
    user.id,
    user.name,
    user.role,
  ]);
}

/** What the rules judge. Locks every admin: two admins who disable each other at once must not both succeed. */
export async function lockUserFacts(tx: Tx, id: string): Promise<UserFacts | undefined> {
  const { rows } = await tx.query<{ id: string }>(
    `select id from app."user" where role = 'admin' and disabled_at is null order by id for update`,
    [],
  );
  const row = await tx.maybeOne<{ role: UserRole; disabled_at: Date | null }>(
    `select role, disabled_at from app."user" where id = $1 for update`,
    [id],
  );
  if (row === undefined) return undefined;
  return { role: row.role, isDisabled: row.disabled_at !== null, activeAdmins: rows.length };
}

export async function setRole(tx: Tx, id: string, role: UserRole): Promise<void> {
  await tx.query(`update app."user" set role = $2 where id = $1`, [id, role]);
}

/** Disabling also revokes everything that the user holds, open links included. */
export async function setDisabled(tx: Tx, id: string, isDisabled: boolean): Promise<void> {
  await tx.query(`update app."user" set disabled_at = case when $2 then now() end where id = $1`, [id, isDisabled]);
  if (!isDisabled) return;
  await tx.query("update app.credential set revoked_at = now() where user_id = $1 and revoked_at is null", [id]);
  await tx.query("update app.login_link set used_at = now() where user_id = $1 and used_at is null", [id]);
}

export type NewLink = {
  readonly organisationId: OrganisationId;
  readonly id: LinkId;
  readonly userId: string;
  readonly hash: Buffer;
  readonly lifeMs: number;
};

export async function insertLink(tx: Tx, link: NewLink): Promise<string> {
  const row = await tx.one<{ expires_at: Date }>(
    `insert into app.login_link (organisation_id, id, user_id, hash, expires_at)
     values ($1, $2, $3, $4, now() + $5 * interval '1 millisecond') returning expires_at`,
    [link.organisationId, link.id, link.userId, link.hash, link.lifeMs],
  );
  return row.expires_at.toISOString();
}

/** Whom somebody signs in as. */
export type Member = {
  readonly organisationId: OrganisationId;
  readonly userId: UserId;
};

export type FoundLink = Member & { readonly id: LinkId; readonly state: "good" | "used" | "expired" };

/** Service role: before that, nobody knows the organisation. */
export async function findLink(tx: Tx, hash: Buffer): Promise<FoundLink | undefined> {
  const row = await tx.maybeOne<{
    organisation_id: OrganisationId;
    user_id: UserId;
    id: LinkId;
    state: FoundLink["state"];
  }>(
    `select organisation_id, user_id, id,
            case when used_at is not null then 'used' when expires_at <= now() then 'expired' else 'good' end as state
       from app.login_link where hash = $1`,
    [hash],
  );
  return row === undefined
    ? undefined
    : { organisationId: row.organisation_id, userId: row.user_id, id: row.id, state: row.state };
}

/** False when somebody was faster or its time has run out. */
export async function burnLink(tx: Tx, id: LinkId): Promise<boolean> {
  const { count } = await tx.query(
    "update app.login_link set used_at = now() where id = $1 and used_at is null and expires_at > now()",
    [id],
  );
  return count === 1;
}

/** Service role. Of a user who is disabled too: that is said only after the password was right. */
export async function findPassword(tx: Tx, signInName: string): Promise<(Member & { hash: string }) | undefined> {
  const row = await tx.maybeOne<{ organisation_id: OrganisationId; user_id: UserId; hash: string }>(
    "select organisation_id, user_id, hash from app.password where sign_in_name = $1",
    [signInName],
  );
  return row === undefined ? undefined : { organisationId: row.organisation_id, userId: row.user_id, hash: row.hash };
}

/** Needs the scope own-password. Not by `excluded`, which would need the right to read a hash. */
export async function storePassword(tx: Tx, member: Member, signInName: string, hash: string): Promise<void> {
  await tx.query(
    `insert into app.password (organisation_id, user_id, sign_in_name, hash) values ($1, $2, $3, $4)
     on conflict (organisation_id, user_id) do update set sign_in_name = $3, hash = $4, changed_at = now()`,
    [member.organisationId, member.userId, signInName, hash],
  );
}
