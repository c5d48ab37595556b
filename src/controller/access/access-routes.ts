// SPDX-License-Identifier: Apache-2.0
// API tokens and the audit. A token can be given no scope that its maker lacks.

import { Failure } from "../../std/errors.ts";
import { isUniqueViolation } from "../../db/pool.ts";
import { insertAudit, listAudit } from "../audit/audit-store.ts";
import type { Context } from "../context.ts";
import type { Call, Handlers } from "../http/reply.ts";
import { actorOf, drawSecret, hashSecret } from "./credential.ts";
import { insertToken, listTokens, revokeCredential } from "./credential-store.ts";

type Names = "tokenCreate" | "tokenList" | "tokenRevoke" | "auditList";

export function accessRoutes(context: Context): Handlers<Names> {
  const { db } = context;
  return {
    tokenCreate: (call) => createToken(context, call),
    tokenList: async ({ caller }) => ({ items: [...(await db.tenant(caller, listTokens))], nextCursor: null }),
    tokenRevoke: ({ caller, params }) =>
      db.tenant(caller, async (tx) => {
        const revoked = await revokeCredential(tx, params.credentialId);
        if (revoked.kind === "unknown")
          throw new Failure("not_found", `there is no token ${params.credentialId}; see: holdfast token list`);
        if (revoked.kind === "already") throw new Failure("conflict", "it was revoked before");
        if (revoked.kind === "of-node")
          throw new Failure("conflict", "a node's credential ends when the node is retired or rotates it");
        const { organisationId } = caller;
        await insertAudit(tx, {
          organisationId,
          id: context.ids("aud"),
          actor: actorOf(caller),
          action: revoked.credential.kind === "token" ? "token.revoke" : "user.sign-out",
          subject: params.credentialId,
          data: { name: revoked.credential.name, userId: revoked.credential.userId },
        });
        return revoked.credential;
      }),
    auditList: ({ caller, query }) => db.tenant(caller, (tx) => listAudit(tx, query)),
  };
}

async function createToken(context: Context, { caller, body }: Call<"tokenCreate">) {
  const lacking = body.scopes.filter((scope) => !caller.scopes.includes(scope));
  if (lacking.length > 0)
    throw new Failure("forbidden", `your credential lacks ${lacking.join(", ")}: it cannot give what it does not have`);
  const secret = drawSecret("token", context.random);
  const { organisationId, userId } = caller;
  const id = context.ids("cred");
  const token = await context.db
    .tenant(caller, async (tx) => {
      const made = await insertToken(tx, {
        organisationId,
        id,
        userId,
        name: body.name,
        scopes: body.scopes,
        hash: hashSecret(secret),
        expiresInDays: body.expiresInDays,
      });
      await insertAudit(tx, {
        organisationId,
        id: context.ids("aud"),
        actor: actorOf(caller),
        action: "token.create",
        subject: id,
        data: { name: body.name, scopes: body.scopes },
      });
      return made;
    })
    .catch((error: unknown) => {
      if (isUniqueViolation(error, "credential_token_name")) {
        throw new Failure("conflict", `a token named ${body.name} exists: revoke it or choose another name`, {
          cause: error,
        });
      }
      throw error;
    });
  return { ...token, secret };
}
