// SPDX-License-Identifier: Apache-2.0
// Decides who is calling and whether the route is theirs. The organisation comes from the credential and from nowhere else.

import { Failure } from "../../std/errors.ts";
import { errorTable } from "../../protocol/errors.ts";
import { type Access, CSRF_HEADER, PAIRING_CODE_HEADER } from "../../protocol/route.ts";
import type { Context } from "../context.ts";
import { findPairingCode } from "../nodes/pairing-store.ts";
import { acceptOffered } from "../nodes/rotation.ts";
import { csrfTokenOf, isCsrfToken, readCookie } from "./browser-cookie.ts";
import { type Caller, hashSecret, SECRET_PATTERN } from "./credential.ts";
import { findCaller, touchCredential } from "./credential-store.ts";

/** What of a request says who is calling. */
export type Presented = {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
};

export async function authorise(context: Context, access: Access, presented: Presented): Promise<Caller | undefined> {
  if (access.kind === "public" || access.kind === "pairing") return undefined;
  if (access.kind === "enrolling" && header(presented, PAIRING_CODE_HEADER) !== undefined) {
    await requireLiveCode(context, header(presented, PAIRING_CODE_HEADER) ?? "");
    return undefined;
  }
  if (access.kind === "sign-in") {
    refuseOtherSites(presented);
    return undefined;
  }
  const { secret, isBrowser } = secretOf(presented);
  if (!SECRET_PATTERN.test(secret)) throw new Failure("unauthenticated", "the credential is not one of Holdfast's");
  const found = await context.db.service((tx) => findCaller(tx, hashSecret(secret)));
  if (found === undefined)
    throw new Failure(
      "unauthenticated",
      `the credential is unknown, expired or revoked. ${errorTable.unauthenticated.advice}`,
    );
  const { caller, isStale, isOffered } = found;
  if (isBrowser !== (caller.kind === "people" && caller.credentialKind === "browser"))
    throw new Failure("unauthenticated", "a browser's credential travels in its cookie, any other in a header");
  if (isBrowser && presented.method !== "GET" && presented.method !== "HEAD")
    requireCsrfToken(header(presented, CSRF_HEADER), secret);
  if (isStale) await context.db.service((tx) => touchCredential(tx, caller.organisationId, caller.credentialId));
  if (isOffered && caller.kind === "node") await acceptOffered(context, caller);
  requireAccess(caller, access);
  return isBrowser && caller.kind === "people" ? { ...caller, csrfToken: csrfTokenOf(secret) } : caller;
}

function header({ headers }: Presented, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

/** A header wins: whoever sets one means it. */
function secretOf(presented: Presented): { readonly secret: string; readonly isBrowser: boolean } {
  const given = header(presented, "authorization");
  const bearer = /^Bearer (\S+)$/i.exec(given ?? "")?.[1];
  if (bearer !== undefined) return { secret: bearer, isBrowser: false };
  const cookie = given === undefined ? readCookie(header(presented, "cookie"), header(presented, "host")) : undefined;
  if (cookie !== undefined && cookie !== "") return { secret: cookie, isBrowser: true };
  throw new Failure(
    "unauthenticated",
    "this address needs a credential: send Authorization: Bearer …, or sign in with the browser",
  );
}

function requireCsrfToken(given: string | undefined, secret: string): void {
  if (isCsrfToken(given, secret)) return;
  throw new Failure(
    "forbidden",
    `the header ${CSRF_HEADER} is ${given === undefined ? "missing" : "wrong"}: a browser sends what GET /v1/whoami told it as csrfToken`,
  );
}

/** Nobody signs a browser in from another site: it would work under an account of theirs. */
function refuseOtherSites(presented: Presented): void {
  const site = header(presented, "sec-fetch-site");
  const origin = header(presented, "origin");
  const isOurs = origin === undefined || URL.parse(origin)?.host === header(presented, "host");
  if ((site === undefined || site === "same-origin" || site === "none") && isOurs) return;
  throw new Failure("forbidden", "signing in works from the controller's own page only");
}

/** For what a machine fetches before it has a credential. */
async function requireLiveCode(context: Context, code: string): Promise<void> {
  const found = SECRET_PATTERN.test(code)
    ? await context.db.service((tx) => findPairingCode(tx, hashSecret(code)))
    : undefined;
  if (found === undefined) throw new Failure("pairing_code_unknown", "no such pairing code was ever made here");
  if (found.isExpired) throw new Failure("pairing_code_expired", "this pairing code has expired: make a new one");
}

function requireAccess(caller: Caller, access: Extract<Access, { kind: "people" | "node" | "enrolling" }>): void {
  if (access.kind === "enrolling") {
    if (caller.kind === "node") return;
    throw new Failure("forbidden", "this address takes a pairing code or a node's credential");
  }
  const names = { node: "a node's credential", people: "a person's credential" } as const;
  if (caller.kind !== access.kind)
    throw new Failure("forbidden", `this address takes ${names[access.kind]}, and this is ${names[caller.kind]}`);
  const scopes: readonly string[] = caller.scopes;
  if (!scopes.includes(access.scope)) throw new Failure("forbidden", `the credential lacks the scope ${access.scope}`);
}
