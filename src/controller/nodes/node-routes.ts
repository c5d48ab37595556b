// SPDX-License-Identifier: Apache-2.0
// What people do with nodes: look, drain, retire, ask for a scene.

import { Failure } from "../../std/errors.ts";
import { nodeCan, sceneCan } from "../../protocol/node.ts";
import type { Node } from "../../protocol/node-schema.ts";
import { actorOf, type PeopleCaller } from "../access/credential.ts";
import { insertAudit } from "../audit/audit-store.ts";
import type { Context } from "../context.ts";
import type { Handlers } from "../http/reply.ts";
import { returnLeases } from "../jobs/return-store.ts";
import { changeStatus, findNode, listNodes, type StatusAction } from "./node-store.ts";
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
  | "nodeCredential";

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

async function rotate(context: Context, caller: PeopleCaller, nodeId: string): Promise<Node> {
  const { organisationId } = caller;
  const rotated = await context.db.tenant(caller, async (tx) => {
    const isAsked = await requestRotation(tx, nodeId);
    const node = (await findNode(tx, context.config.heartbeatMs, nodeId)) ?? notFound(nodeId);
    if (!isAsked) throw new Failure("conflict", `${node.name} is ${node.status}: ${nodeCan.rotate.otherwise}`);
    const audit = { organisationId, id: context.ids("aud"), actor: actorOf(caller), action: "node.rotate" };
    await insertAudit(tx, { ...audit, subject: nodeId });
    return node;
  });
  context.wakeups.wake(`changes:${organisationId}`);
  return rotated;
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
