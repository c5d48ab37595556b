// SPDX-License-Identifier: Apache-2.0
// Nodes as people see and change them.

import { exact, id, nullable, page } from "../common-schema.ts";
import { node } from "../node-schema.ts";
import { defineRoute } from "../route.ts";
import { sceneName } from "../scene-schema.ts";
import { admin, read, write } from "./access.ts";

const nodeParams = exact({ nodeId: id("node") });

export const nodeRoutes = {
  nodeList: defineRoute({
    method: "GET",
    path: "/v1/nodes",
    summary: "All nodes, retired ones last",
    access: read,
    reply: page(node),
    errors: [],
  }),
  nodeShow: defineRoute({
    method: "GET",
    path: "/v1/nodes/:nodeId",
    summary: "One node",
    access: read,
    params: nodeParams,
    reply: node,
    errors: ["not_found"],
  }),
  nodeDrain: defineRoute({
    method: "POST",
    path: "/v1/nodes/:nodeId/drain",
    summary: "Let a node finish what it holds and claim nothing",
    access: write,
    params: nodeParams,
    reply: node,
    errors: ["not_found", "conflict"],
  }),
  nodeActivate: defineRoute({
    method: "POST",
    path: "/v1/nodes/:nodeId/activate",
    summary: "Undo a drain",
    access: write,
    params: nodeParams,
    reply: node,
    errors: ["not_found", "conflict"],
  }),
  nodeRetire: defineRoute({
    method: "POST",
    path: "/v1/nodes/:nodeId/retire",
    summary: "Revoke a node's credential for good and return its leases",
    access: admin,
    params: nodeParams,
    reply: node,
    errors: ["not_found", "conflict"],
  }),
  nodeRotate: defineRoute({
    method: "POST",
    path: "/v1/nodes/:nodeId/rotate",
    summary: "Ask a node to replace its credential; the old one works until the new one is used",
    access: admin,
    params: nodeParams,
    reply: node,
    errors: ["not_found", "conflict"],
  }),
  nodeScene: defineRoute({
    method: "POST",
    path: "/v1/nodes/:nodeId/scene",
    summary: "Ask a node for a scene (null: for none); it decides with its next heartbeat and reports why not",
    access: write,
    params: nodeParams,
    body: exact({ scene: nullable(sceneName) }),
    reply: node,
    errors: ["not_found", "conflict"],
  }),
} as const;
