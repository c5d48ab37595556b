// SPDX-License-Identifier: Apache-2.0
// How a browser is let in: by a one-time link or by a password. Both are limited by address, a password by name too, and
// an answer never tells whether a name exists.

import { BROWSER_LIFE_MS, SIGN_INS_PER_MINUTE } from "../../protocol/limits.ts";
import { roleScopes } from "../../protocol/user.ts";
import { isUniqueViolation, type Tx } from "../../db/pool.ts";
import { Failure } from "../../std/errors.ts";
import { insertAudit } from "../audit/audit-store.ts";
import type { Context } from "../context.ts";
import { RateLimit } from "../http/rate-limit.ts";
import type { Call, Handlers, WithCookie } from "../http/reply.ts";
import { csrfTokenOf } from "./browser-cookie.ts";
import { actorOf, drawSecret, hashSecret, type PeopleCaller } from "./credential.ts";
import { insertBrowser, revokeBrowsers, revokeCredential } from "./credential-store.ts";
import { hashPassword, verifyPassword } from "./password.ts";
import {
  burnLink,
  findLink,
  findPassword,
  findUser,
  type FoundLink,
  type Member,
  storePassword,
} from "./user-store.ts";

type Names = "whoami" | "signInLink" | "signInPassword" | "signOut" | "passwordSet";

export function signInRoutes(context: Context): Handlers<Names> {
  const byName = new RateLimit(context.clock, { perMinute: SIGN_INS_PER_MINUTE, what: "this name" });
  return {
    whoami: ({ caller }) => Promise.resolve(whoOf(caller)),
    signInLink: (call) => byLink(context, call),
    signInPassword: (call) => byPassword(context, byName, call),
    signOut: (call) => signOut(context, call),
    passwordSet: (call) => setPassword(context, byName, call),
  };
}

function whoOf(caller: PeopleCaller) {
  const { kind: _kind, ...who } = caller;
  return { ...who, scopes: [...caller.scopes] };
}

const linkFaults: Readonly<Record<Exclude<FoundLink["state"], "good">, string>> = {
  used: "this login link was used before: it works once",
  expired: "this login link has expired",
};

async function byLink(context: Context, call: Call<"signInLink">) {
  const link = await context.db.service((tx) => findLink(tx, hashSecret(call.body.secret)));
  if (link === undefined) throw new Failure("sign_in_refused", "no such login link was ever made here");
  if (link.state !== "good") throw new Failure("sign_in_refused", linkFaults[link.state]);
  return signIn(context, call, {
    member: link,
    how: "link",
    before: async (tx) => {
      if (!(await burnLink(tx, link.id))) throw new Failure("sign_in_refused", linkFaults.used);
    },
  });
}

const WRONG = "the name or the password is wrong";

async function byPassword(context: Context, byName: RateLimit, call: Call<"signInPassword">) {
  const { name, password } = call.body;
  byName.take(name.toLowerCase());
  const found = await context.db.service((tx) => findPassword(tx, name));
  const isRight = await verifyPassword(password, found?.hash);
  if (found === undefined || !isRight) throw new Failure("sign_in_refused", WRONG);
  return signIn(context, call, { member: found, how: "password" });
}

type SignIn = {
  readonly member: Member;
  readonly how: "link" | "password";
  /** In the same transaction. */
  readonly before?: (tx: Tx) => Promise<void>;
};

async function signIn(
  context: Context,
  { userAgent }: Call<"signInLink"> | Call<"signInPassword">,
  { member, how, before }: SignIn,
): Promise<WithCookie<ReturnType<typeof whoOf>>> {
  const { organisationId, userId } = member;
  const secret = drawSecret("browser", context.random);
  const id = context.ids("cred");
  const who = await context.db.tenant({ organisationId, scopes: ["sign-in"] }, async (tx) => {
    await before?.(tx);
    const user = await findUser(tx, userId);
    if (user === undefined || user.disabledAt !== null)
      throw new Failure("sign_in_refused", "this user has been disabled: ask an admin");
    const scopes = roleScopes[user.role];
    const { name: organisationName } = await tx.one<{ name: string }>("select name from app.organisation", []);
    const browser = { organisationId, id, userId, name: browserName(userAgent), hash: hashSecret(secret), scopes };
    const expiresAt = await insertBrowser(tx, { ...browser, lifeMs: BROWSER_LIFE_MS });
    const audit = { organisationId, id: context.ids("aud"), actor: userId, action: "user.sign-in", subject: userId };
    await insertAudit(tx, { ...audit, data: { by: how, credentialId: id } });
    return {
      organisationId,
      organisationName,
      userId,
      userName: user.name,
      role: user.role,
      hasPassword: user.hasPassword,
      credentialId: id,
      credentialKind: "browser" as const,
      scopes: [...scopes],
      expiresAt,
      csrfToken: csrfTokenOf(secret),
    };
  });
  return { reply: who, cookie: { secret, lifeMs: BROWSER_LIFE_MS } };
}

/** "Firefox on Linux": enough to know one's own browsers apart. */
export function browserName(userAgent: string | undefined): string {
  const text = userAgent ?? "";
  const program = /(Edg|OPR|Firefox|Chrome|Safari)\//.exec(text.replace(/Headless/g, ""))?.[1] ?? "a browser";
  const system = /Android|iPhone|iPad|Windows|Mac OS X|Linux|CrOS/.exec(text)?.[0] ?? "an unknown system";
  const names: Readonly<Record<string, string>> = { Edg: "Edge", OPR: "Opera", "Mac OS X": "macOS", CrOS: "ChromeOS" };
  return `${names[program] ?? program} on ${names[system] ?? system}`;
}

async function signOut(context: Context, { caller }: Call<"signOut">) {
  if (caller.credentialKind !== "browser")
    throw new Failure("conflict", "this is a token, which is not signed in: revoke it with holdfast token revoke");
  await context.db.tenant(caller, async (tx) => {
    await revokeCredential(tx, caller.credentialId);
    const { organisationId, userId } = caller;
    const audit = { organisationId, id: context.ids("aud"), actor: userId, action: "user.sign-out", subject: userId };
    await insertAudit(tx, { ...audit, data: { credentialId: caller.credentialId } });
  });
  return { reply: { signedOut: 1 }, cookie: { secret: undefined, lifeMs: 0 } };
}

async function setPassword(context: Context, byName: RateLimit, { caller, body }: Call<"passwordSet">) {
  // A token with less than its owner's rights must not make itself a way in with all of them.
  const lacking = roleScopes[caller.role].filter((scope) => !caller.scopes.includes(scope));
  if (lacking.length > 0)
    throw new Failure(
      "forbidden",
      `a password gives all rights of ${caller.userName}; this credential lacks ${lacking.join(", ")}`,
    );
  if (caller.hasPassword) {
    byName.take(caller.userName.toLowerCase());
    const found = await context.db.service((tx) => findPassword(tx, caller.userName));
    if (!(await verifyPassword(body.currentPassword ?? "", found?.hash)))
      throw new Failure("sign_in_refused", "the current password is wrong");
  }
  const hash = await hashPassword(body.newPassword, context.random);
  const { organisationId, organisationName: _name, userId } = caller;
  return context.db
    .tenant({ organisationId, scopes: [...caller.scopes, "own-password"] }, async (tx) => {
      await storePassword(tx, caller, caller.userName, hash);
      const signedOut = await revokeBrowsers(tx, userId, caller.credentialId);
      const audit = { organisationId, id: context.ids("aud"), actor: actorOf(caller), action: "user.password" };
      await insertAudit(tx, { ...audit, subject: userId, data: { signedOut } });
      const user = await findUser(tx, userId);
      if (user === undefined) throw new Error("bug: a caller without a user");
      return user;
    })
    .catch((error: unknown) => {
      if (isUniqueViolation(error, "password_sign_in_name_key")) {
        const why = `somebody of another organisation signs in here as ${caller.userName} already: ask for a user of another name`;
        throw new Failure("conflict", why, { cause: error });
      }
      throw error;
    });
}
