// SPDX-License-Identifier: Apache-2.0
// The first run: one organisation and its admin, and a token for the command line of whoever started the controller.
// Runs on the owner's connection, because before it there is nobody who could be asked.

import { peopleScopes } from "../protocol/user.ts";
import type { IdMaker } from "../std/ids.ts";
import type { Random } from "../std/random.ts";
import { drawSecret, hashSecret } from "./access/credential.ts";

/** One connection of the schema's owner; a transaction around each call is the caller's. */
export type OwnerQuery = <Row>(sql: string, params: readonly unknown[]) => Promise<readonly Row[]>;

/** Makes organisation and admin when there is none. Serialised: two controllers may start at once on a new database. */
export async function ensureOrganisation(
  query: OwnerQuery,
  ids: IdMaker,
): Promise<{ readonly organisationId: string; readonly userId: string }> {
  await query("lock table app.organisation in exclusive mode", []);
  const found = await query<{ organisation_id: string; id: string }>(
    `select u.organisation_id, u.id from app."user" u where u.role = 'admin' and u.disabled_at is null order by u.id limit 1`,
    [],
  );
  const [admin] = found;
  if (admin !== undefined) return { organisationId: admin.organisation_id, userId: admin.id };
  const organisationId = ids("org");
  const userId = ids("user");
  await query("insert into app.organisation (id, name) values ($1, 'default')", [organisationId]);
  await query(`insert into app."user" (organisation_id, id, name, role) values ($1, $2, 'admin', 'admin')`, [
    organisationId,
    userId,
  ]);
  await query(
    "insert into app.audit (organisation_id, id, actor, action, subject) values ($1, $2, 'controller', 'organisation.create', $1)",
    [organisationId, ids("aud")],
  );
  return { organisationId, userId };
}

export type AdminToken = { readonly ids: IdMaker; readonly random: Random; readonly name: string };

/** A new admin token under this name; an earlier one of the name stops working. The secret is returned once. */
export async function replaceAdminToken(query: OwnerQuery, token: AdminToken): Promise<string> {
  const { organisationId, userId } = await ensureOrganisation(query, token.ids);
  const secret = drawSecret("token", token.random);
  const id = token.ids("cred");
  await query(
    "update app.credential set revoked_at = now() where organisation_id = $1 and kind = 'token' and name = $2 and revoked_at is null",
    [organisationId, token.name],
  );
  await query(
    `insert into app.credential (organisation_id, id, kind, name, user_id, hash, scopes) values ($1, $2, 'token', $3, $4, $5, $6)`,
    [organisationId, id, token.name, userId, hashSecret(secret), [...peopleScopes]],
  );
  await query(
    "insert into app.audit (organisation_id, id, actor, action, subject, data) values ($1, $2, 'controller', 'token.create', $3, $4)",
    [organisationId, token.ids("aud"), id, JSON.stringify({ name: token.name })],
  );
  return secret;
}
