// SPDX-License-Identifier: Apache-2.0
// A node's credential is replaced without a moment in which none works: the node draws the new one and offers its hash, both
// work until the new one is used for the first time, then the old one is revoked. A lost answer or a crash loses nothing.

import { nodeScopes } from "../../protocol/access-schema.ts";
import { isUniqueViolation } from "../../db/pool.ts";
import type { Tx } from "../../db/pool.ts";
import { Failure } from "../../std/errors.ts";
import { insertAudit } from "../audit/audit-store.ts";
import { actorOf, type NodeCaller } from "../access/credential.ts";
import type { Context } from "../context.ts";
import type { Call } from "../http/reply.ts";

export async function requestRotation(tx: Tx, nodeId: string): Promise<boolean> {
  const { count } = await tx.query(
    "update app.node set rotation_requested_at = now() where id = $1 and status <> 'retired'",
    [nodeId],
  );
  return count === 1;
}

/** Takes the hash of a new credential; the same one again is a repeat, another one replaces an offer that was never used. */
export async function offerCredential(context: Context, { caller, body }: Call<"nodeCredential">) {
  const hash = Buffer.from(body.credentialHash, "base64url");
  const id = context.ids("cred");
  const { organisationId, nodeId } = caller;
  const offered = await context.db
    .tenant(caller, async (tx) => {
      const known = await tx.maybeOne<{ id: string }>(
        `select c.id from app.node n join app.credential c on c.organisation_id = n.organisation_id and c.id = n.offered_credential_id
          where n.id = $1 and c.hash = $2 for update of n`,
        [nodeId, hash],
      );
      if (known !== undefined) return { credentialId: known.id };
      await tx.query(
        `update app.credential set revoked_at = now()
          where id = (select offered_credential_id from app.node where id = $1) and revoked_at is null`,
        [nodeId],
      );
      await tx.query(
        `insert into app.credential (organisation_id, id, kind, name, node_id, hash, scopes) values ($1, $2, 'node', $3, $4, $5, $6)`,
        [organisationId, id, caller.nodeName, nodeId, hash, [...nodeScopes]],
      );
      await tx.query("update app.node set offered_credential_id = $2 where id = $1", [nodeId, id]);
      await insertAudit(tx, {
        organisationId,
        id: context.ids("aud"),
        actor: actorOf(caller),
        action: "node.offer-credential",
        subject: nodeId,
        data: { credentialId: id },
      });
      return { credentialId: id };
    })
    .catch((error: unknown) => {
      if (isUniqueViolation(error, "credential_hash_key"))
        throw new Failure("conflict", "this credential is known already: draw a new one", { cause: error });
      throw error;
    });
  context.wakeups.wake(`changes:${organisationId}`);
  return offered;
}

/** The first use of the offered credential: the node has it safely, so every older one ends. */
export async function acceptOffered(context: Context, caller: NodeCaller): Promise<void> {
  await context.db.tenant(caller, async (tx) => {
    const { count } = await tx.query(
      `update app.node set offered_credential_id = null, rotation_requested_at = null where id = $1 and offered_credential_id = $2`,
      [caller.nodeId, caller.credentialId],
    );
    if (count === 0) return;
    await tx.query(
      "update app.credential set revoked_at = now() where node_id = $1 and id <> $2 and revoked_at is null",
      [caller.nodeId, caller.credentialId],
    );
    await insertAudit(tx, {
      organisationId: caller.organisationId,
      id: context.ids("aud"),
      actor: actorOf(caller),
      action: "node.rotated",
      subject: caller.nodeId,
      data: { credentialId: caller.credentialId },
    });
  });
  context.wakeups.wake(`changes:${caller.organisationId}`);
}
