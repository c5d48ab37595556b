// SPDX-License-Identifier: Apache-2.0
// What people do with nodes: look, drain, retire, and make a code that pairs a machine.

import { createPublicKey, verify } from "node:crypto";
import { Failure } from "../../std/errors.ts";
import { nodeScopes } from "../../protocol/access-schema.ts";
import { pairMessage } from "../../protocol/agent-schema.ts";
import { PAIRING_CODE_LIFE_MS } from "../../protocol/limits.ts";
import { nodeCan, sceneCan } from "../../protocol/node.ts";
import type { Node } from "../../protocol/node-schema.ts";
import { isUniqueViolation } from "../../db/pool.ts";
import { actorOf, drawSecret, hashSecret, type PeopleCaller, SECRET_PATTERN } from "../access/credential.ts";
import { insertAudit } from "../audit/audit-store.ts";
import type { Context } from "../context.ts";
import type { Call, Handlers } from "../http/reply.ts";
import { returnLeases } from "../jobs/return-store.ts";
import { changeStatus, findNode, listNodes, type StatusAction } from "./node-store.ts";
import { enrol, findPairingCode, insertPairingCode } from "./pairing-store.ts";
import { offerCredential, requestRotation } from "./rotation.ts";
import { requestScene } from "./scene-store.ts";

type Names =
  | "nodeList"
  | "nodeShow"
  | "nodeDrain"
  | "nodeActivate"
  | "nodeRetire"
  | "nodeRotate"
  | "nodeScene"
  | "nodeCredential"
  | "pairingCreate"
  | "nodePair";

export function nodeRoutes(context: Context): Handlers<Names> {
  const { db, config } = context;
  return {
    nodeList: async ({ caller }) => {
      const items = await db.tenant(caller, (tx) => listNodes(tx, config.heartbeatMs));
      return { items: [...items], nextCursor: null };
    },
    nodeShow: async ({ caller, params }) => {
      const node = await db.tenant(caller, (tx) => findNode(tx, config.heartbeatMs, params.nodeId));
      return node ?? notFound(params.nodeId);
    },
    nodeDrain: ({ caller, params }) => act(context, caller, params.nodeId, "drain"),
    nodeActivate: ({ caller, params }) => act(context, caller, params.nodeId, "activate"),
    nodeRetire: ({ caller, params }) => act(context, caller, params.nodeId, "retire"),
    nodeRotate: ({ caller, params }) => rotate(context, caller, params.nodeId),
    nodeScene: ({ caller, params, body }) => askForScene(context, caller, params.nodeId, body.scene),
    nodeCredential: (call) => offerCredential(context, call),
    pairingCreate: ({ caller, body }) => createCode(context, caller, body.name),
    nodePair: (call) => pair(context, call),
  };
}

function notFound(nodeId: string): never {
  throw new Failure("not_found", `there is no node ${nodeId}; see: holdfast node list`);
}

async function act(context: Context, caller: PeopleCaller, nodeId: string, action: StatusAction): Promise<Node> {
  const node = await context.db.tenant(caller, async (tx) => {
    const isChanged = await changeStatus(tx, nodeId, action);
    const after = (await findNode(tx, context.config.heartbeatMs, nodeId)) ?? notFound(nodeId);
    if (!isChanged) throw new Failure("conflict", `${after.name} is ${after.status}: ${nodeCan[action].otherwise}`);
    const { organisationId } = caller;
    await insertAudit(tx, {
      organisationId,
      id: context.ids("aud"),
      actor: actorOf(caller),
      action: `node.${action}`,
      subject: nodeId,
    });
    if (action !== "retire") return after;
    await returnLeases(tx, context, { nodeId, actor: actorOf(caller), why: "the node was retired" });
    return (await findNode(tx, context.config.heartbeatMs, nodeId)) ?? notFound(nodeId);
  });
  context.wakeups.wake(`work:${caller.organisationId}`);
  context.wakeups.wake(`changes:${caller.organisationId}`);
  return node;
}

function rotate(context: Context, caller: PeopleCaller, nodeId: string): Promise<Node> {
  return context.db.tenant(caller, async (tx) => {
    const isAsked = await requestRotation(tx, nodeId);
    const node = (await findNode(tx, context.config.heartbeatMs, nodeId)) ?? notFound(nodeId);
    if (!isAsked) throw new Failure("conflict", `${node.name} is ${node.status}: ${nodeCan.rotate.otherwise}`);
    const { organisationId } = caller;
    const audit = { organisationId, id: context.ids("aud"), actor: actorOf(caller), action: "node.rotate" };
    await insertAudit(tx, { ...audit, subject: nodeId });
    return node;
  });
}

async function askForScene(
  context: Context,
  caller: PeopleCaller,
  nodeId: string,
  scene: string | null,
): Promise<Node> {
  const { organisationId } = caller;
  const node = await context.db.tenant(caller, async (tx) => {
    const wish = await requestScene(tx, nodeId, scene);
    const asked = (await findNode(tx, context.config.heartbeatMs, nodeId)) ?? notFound(nodeId);
    if (wish === undefined)
      throw new Failure("conflict", `${asked.name} is ${asked.status}: ${sceneCan.activate.otherwise}`);
    const audit = { organisationId, id: context.ids("aud"), actor: actorOf(caller), action: "node.scene" };
    await insertAudit(tx, { ...audit, subject: nodeId, data: { scene, number: wish.number } });
    return asked;
  });
  context.wakeups.wake(`changes:${organisationId}`);
  return node;
}

async function createCode(context: Context, caller: PeopleCaller, name: string) {
  const code = drawSecret("pairing", context.random);
  const id = context.ids("pair");
  const { organisationId } = caller;
  const made = await context.db.tenant(caller, async (tx) => {
    const inserted = await insertPairingCode(tx, {
      organisationId,
      id,
      name,
      hash: hashSecret(code),
      lifeMs: PAIRING_CODE_LIFE_MS,
    });
    if (inserted === undefined) throw nameTaken(name);
    await insertAudit(tx, {
      organisationId,
      id: context.ids("aud"),
      actor: actorOf(caller),
      action: "node.pair",
      subject: id,
      data: { name },
    });
    return inserted;
  });
  return { id, name, code, expiresAt: made.expiresAt };
}

function nameTaken(name: string): Failure {
  return new Failure(
    "node_name_taken",
    `a node named ${name} exists: retire it or choose another name; pairing does not replace a node`,
  );
}

async function pair(context: Context, { body, pairingCode }: Call<"nodePair">) {
  if (pairingCode === undefined || !SECRET_PATTERN.test(pairingCode)) {
    throw new Failure("pairing_code_unknown", "this is not a pairing code: one begins with hfp_ and has 47 characters");
  }
  proveKey(pairingCode, body);
  const found = await context.db.service((tx) => findPairingCode(tx, hashSecret(pairingCode)));
  if (found === undefined) throw new Failure("pairing_code_unknown", "no such pairing code was ever made here");
  const { organisationId, id: pairingId } = found;
  const nodeId = context.ids("node");
  const enrolled = await context.db
    .tenant({ organisationId, scopes: [] }, async (tx) => {
      const result = await enrol(tx, {
        organisationId,
        pairingId,
        nodeId,
        credentialId: context.ids("cred"),
        publicKey: Buffer.from(body.publicKey, "base64url"),
        credentialHash: Buffer.from(body.credentialHash, "base64url"),
        scopes: nodeScopes,
      });
      if (result.kind === "enrolled") {
        await insertAudit(tx, {
          organisationId,
          id: context.ids("aud"),
          actor: pairingId,
          action: "node.enrol",
          subject: nodeId,
          data: { name: result.name },
        });
      }
      return result;
    })
    .catch((error: unknown) => {
      if (isUniqueViolation(error, "node_name")) throw nameTaken("this");
      if (isUniqueViolation(error, "credential_hash_key")) {
        throw new Failure("conflict", "this credential is in use: draw another one for each pairing", { cause: error });
      }
      throw error;
    });
  if (enrolled.kind === "used")
    throw new Failure("pairing_code_used", "this pairing code has enrolled a machine already");
  if (enrolled.kind === "expired") throw new Failure("pairing_code_expired", "this pairing code has expired");
  const reply = { nodeId: enrolled.nodeId, name: enrolled.name, organisationName: found.organisationName };
  return enrolled.kind === "repeated" ? { repeated: reply } : reply;
}

/** The DER prefix of an Ed25519 public key (RFC 8410). */
const ED25519_SPKI = Buffer.from("302a300506032b6570032100", "hex");

/** The machine holds the private half, and this very code and credential were meant. */
function proveKey(code: string, body: Call<"nodePair">["body"]): void {
  const der = Buffer.concat([ED25519_SPKI, Buffer.from(body.publicKey, "base64url")]);
  const message = Buffer.from(pairMessage(code, body.publicKey, body.credentialHash));
  let isProved = false;
  try {
    const key = createPublicKey({ key: der, format: "der", type: "spki" });
    isProved = verify(null, message, key, Buffer.from(body.signature, "base64url"));
  } catch (error) {
    throw new Failure("invalid_request", "/publicKey is not an Ed25519 key", {
      cause: error,
      details: [{ place: "/publicKey", problem: "is not an Ed25519 key" }],
    });
  }
  if (!isProved) {
    throw new Failure("invalid_request", "/signature does not prove possession of the key", {
      details: [{ place: "/signature", problem: "does not prove possession of the key" }],
    });
  }
}
