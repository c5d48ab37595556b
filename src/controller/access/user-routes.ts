// SPDX-License-Identifier: Apache-2.0
// People and their login links: what an admin does with users. Every change of authority is audited where it is made.

import { LOGIN_LINK_LIFE_MS } from "../../protocol/limits.ts";
import { type UserAction, whyNotUser } from "../../protocol/user.ts";
import type { User } from "../../protocol/user-schema.ts";
import { isUniqueViolation, type Tx } from "../../db/pool.ts";
import { Failure } from "../../std/errors.ts";
import { insertAudit } from "../audit/audit-store.ts";
import type { Context } from "../context.ts";
import type { Call, Handlers } from "../http/reply.ts";
import { actorOf, drawSecret, hashSecret, type PeopleCaller } from "./credential.ts";
import { listCredentials, revokeBrowsers } from "./credential-store.ts";
import { findUser, insertLink, insertUser, listUsers, lockUserFacts, setDisabled, setRole } from "./user-store.ts";

type Names =
  | "userList"
  | "userCreate"
  | "userRole"
  | "userDisable"
  | "userEnable"
  | "userSignOut"
  | "loginLinkCreate"
  | "credentialList";

export function userRoutes(context: Context): Handlers<Names> {
  const { db } = context;
  return {
    userList: async ({ caller }) => ({ items: [...(await db.tenant(caller, listUsers))], nextCursor: null }),
    userCreate: (call) => create(context, call),
    userRole: (call) => changeRole(context, call),
    userDisable: (call) => setActive(context, call, "disable"),
    userEnable: (call) => setActive(context, call, "enable"),
    userSignOut: (call) => signOutEverywhere(context, call),
    loginLinkCreate: (call) => makeLink(context, call),
    credentialList: async ({ caller }) => ({
      items: [...(await db.tenant(caller, listCredentials))],
      nextCursor: null,
    }),
  };
}

function unknown(userId: string): Failure {
  return new Failure("not_found", `there is no user ${userId}; see: holdfast user list`);
}

async function record(
  context: Context,
  tx: Tx,
  caller: PeopleCaller,
  entry: { action: string; subject: string; data?: object },
) {
  await insertAudit(tx, {
    organisationId: caller.organisationId,
    id: context.ids("aud"),
    actor: actorOf(caller),
    action: entry.action,
    subject: entry.subject,
    data: { ...entry.data },
  });
}

async function mustFind(tx: Tx, userId: string): Promise<User> {
  const user = await findUser(tx, userId);
  if (user === undefined) throw unknown(userId);
  return user;
}

async function create(context: Context, { caller, body }: Call<"userCreate">): Promise<User> {
  const id = context.ids("user");
  return context.db
    .tenant(caller, async (tx) => {
      await insertUser(tx, { organisationId: caller.organisationId, id, name: body.name, role: body.role });
      await record(context, tx, caller, { action: "user.create", subject: id, data: body });
      return mustFind(tx, id);
    })
    .catch((error: unknown) => {
      if (isUniqueViolation(error, "user_organisation_id_name_key"))
        throw new Failure("conflict", `a user named ${body.name} exists: choose another name, or enable that one`, {
          cause: error,
        });
      throw error;
    });
}

/** Throws why the action may not be taken, judged under the lock of every admin. */
async function requireAllowed(tx: Tx, userId: string, action: UserAction | undefined): Promise<void> {
  const facts = await lockUserFacts(tx, userId);
  if (facts === undefined) throw unknown(userId);
  const why = action === undefined ? undefined : whyNotUser(action, facts);
  if (why !== undefined) throw new Failure("conflict", why);
}

function changeRole(context: Context, { caller, params, body }: Call<"userRole">): Promise<User> {
  const { userId } = params;
  return context.db.tenant(caller, async (tx) => {
    const before = await mustFind(tx, userId);
    if (before.role === body.role) throw new Failure("conflict", `${before.name} is ${body.role} already`);
    await requireAllowed(tx, userId, body.role === "member" ? "demote" : undefined);
    await setRole(tx, userId, body.role);
    await record(context, tx, caller, { action: "user.role", subject: userId, data: body });
    return mustFind(tx, userId);
  });
}

function setActive(
  context: Context,
  { caller, params }: Call<"userDisable"> | Call<"userEnable">,
  action: "disable" | "enable",
): Promise<User> {
  const { userId } = params;
  return context.db.tenant(caller, async (tx) => {
    await requireAllowed(tx, userId, action);
    await setDisabled(tx, userId, action === "disable");
    await record(context, tx, caller, { action: `user.${action}`, subject: userId });
    return mustFind(tx, userId);
  });
}

function signOutEverywhere(context: Context, { caller, params }: Call<"userSignOut">) {
  const { userId } = params;
  if (userId !== caller.userId && !caller.scopes.includes("fleet:admin"))
    throw new Failure("forbidden", "signing others out needs the scope fleet:admin");
  return context.db.tenant(caller, async (tx) => {
    await mustFind(tx, userId);
    const signedOut = await revokeBrowsers(tx, userId, null);
    await record(context, tx, caller, { action: "user.sign-out-everywhere", subject: userId, data: { signedOut } });
    return { signedOut };
  });
}

async function makeLink(context: Context, { caller, body }: Call<"loginLinkCreate">) {
  const secret = drawSecret("link", context.random);
  const userId = body.userId ?? caller.userId;
  return context.db.tenant(caller, async (tx) => {
    const user = await mustFind(tx, userId);
    if (user.disabledAt !== null) throw new Failure("conflict", `${user.name} is disabled: enable the user first`);
    const id = context.ids("link");
    const link = { organisationId: caller.organisationId, id, userId, hash: hashSecret(secret) };
    const expiresAt = await insertLink(tx, { ...link, lifeMs: LOGIN_LINK_LIFE_MS });
    await record(context, tx, caller, { action: "user.login-link", subject: userId, data: { linkId: id } });
    return { userId: user.id, userName: user.name, path: `/sign-in#${secret}`, expiresAt };
  });
}
