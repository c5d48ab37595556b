// SPDX-License-Identifier: Apache-2.0
// Decides who is calling and whether the route is theirs. The organisation comes from the credential and from nowhere else.

import { Failure } from "../../std/errors.ts";
import { errorTable } from "../../protocol/errors.ts";
import type { Access } from "../../protocol/route.ts";
import type { Context } from "../context.ts";
import { type Caller, hashSecret, SECRET_PATTERN } from "./credential.ts";
import { findCaller, touchCredential } from "./credential-store.ts";

export async function authorise(
  context: Context,
  access: Access,
  header: string | undefined,
): Promise<Caller | undefined> {
  if (access.kind === "public" || access.kind === "pairing") return undefined;
  const secret = /^Bearer (\S+)$/i.exec(header ?? "")?.[1];
  if (secret === undefined)
    throw new Failure("unauthenticated", "this address needs a credential: send Authorization: Bearer …");
  if (!SECRET_PATTERN.test(secret)) throw new Failure("unauthenticated", "the credential is not one of Holdfast's");
  const found = await context.db.service((tx) => findCaller(tx, hashSecret(secret)));
  if (found === undefined)
    throw new Failure(
      "unauthenticated",
      `the credential is unknown, expired or revoked. ${errorTable.unauthenticated.advice}`,
    );
  const { caller, isStale } = found;
  if (isStale) await context.db.service((tx) => touchCredential(tx, caller.organisationId, caller.credentialId));
  if (caller.kind !== access.kind) {
    const wanted = access.kind === "node" ? "a node's credential" : "a person's token";
    throw new Failure(
      "forbidden",
      `this address takes ${wanted}, and this is ${caller.kind === "node" ? "a node's credential" : "a person's token"}`,
    );
  }
  if (!caller.scopes.includes(access.scope))
    throw new Failure("forbidden", `the credential lacks the scope ${access.scope}`);
  return caller;
}
