// SPDX-License-Identifier: Apache-2.0
// The route table: every address of the controller. Node routes and people routes are disjoint, pinned by a test.

import Type from "typebox";
import { auditEntry, createdToken, overview, token, tokenCreation, who } from "./access-schema.ts";
import {
  claimReply,
  claimRequest,
  endingReply,
  endingRequest,
  heartbeatReply,
  heartbeatRequest,
  helloReply,
  helloRequest,
  logReply,
  logRequest,
  pairReply,
  pairRequest,
  renewalsReply,
  renewalsRequest,
  startsRequest,
  verdicts,
} from "./agent-schema.ts";
import { exact, id, name, page } from "./common-schema.ts";
import { cursor, job, jobDetail, jobEvent, jobListQuery, jobSubmission, logPage } from "./job-schema.ts";
import { PAGE_MAX } from "./limits.ts";
import { node, pairingCode } from "./node-schema.ts";
import { defineRoute } from "./route.ts";

const jobParams = exact({ jobId: id("job") });
const nodeParams = exact({ nodeId: id("node") });
const read = { kind: "people", scope: "fleet:read" } as const;
const write = { kind: "people", scope: "fleet:write" } as const;
const admin = { kind: "people", scope: "fleet:admin" } as const;
const heartbeat = { kind: "node", scope: "node:heartbeat" } as const;
const claim = { kind: "node", scope: "node:claim" } as const;
const report = { kind: "node", scope: "node:report" } as const;
const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_MAX }));

export const routes = {
  health: defineRoute({
    method: "GET",
    path: "/v1/health",
    summary: "Whether the controller answers",
    access: { kind: "public" },
    reply: exact({ status: Type.Literal("ok"), version: Type.String() }),
    errors: [],
  }),
  whoami: defineRoute({
    method: "GET",
    path: "/v1/whoami",
    summary: "Who the credential belongs to",
    access: read,
    reply: who,
    errors: [],
  }),
  overview: defineRoute({
    method: "GET",
    path: "/v1/overview",
    summary: "Nodes and jobs in numbers, and what needs attention",
    access: read,
    reply: overview,
    errors: [],
  }),

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
  pairingCreate: defineRoute({
    method: "POST",
    path: "/v1/pairing-codes",
    summary: "Make a single-use code that pairs one machine under this name",
    access: admin,
    body: exact({ name }),
    status: 201,
    reply: pairingCode,
    errors: ["node_name_taken"],
  }),

  jobSubmit: defineRoute({
    method: "POST",
    path: "/v1/jobs",
    summary: "Submit a job",
    access: write,
    body: jobSubmission,
    status: 201,
    reply: job,
    idempotent: true,
    errors: ["idempotency_conflict"],
  }),
  jobList: defineRoute({
    method: "GET",
    path: "/v1/jobs",
    summary: "Jobs, newest first",
    access: read,
    query: jobListQuery,
    reply: page(job),
    errors: [],
  }),
  jobShow: defineRoute({
    method: "GET",
    path: "/v1/jobs/:jobId",
    summary: "One job with its input and result",
    access: read,
    params: jobParams,
    reply: jobDetail,
    errors: ["not_found"],
  }),
  jobCancel: defineRoute({
    method: "POST",
    path: "/v1/jobs/:jobId/cancel",
    summary: "Cancel: at once when it waits, with the next renewal when it runs",
    access: write,
    params: jobParams,
    reply: job,
    errors: ["not_found", "conflict"],
  }),
  jobEvents: defineRoute({
    method: "GET",
    path: "/v1/jobs/:jobId/events",
    summary: "The ledger of one job, oldest first",
    access: read,
    params: jobParams,
    query: exact({ after: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647 })), limit }),
    reply: exact({ events: Type.Array(jobEvent) }),
    errors: ["not_found"],
  }),
  jobLogs: defineRoute({
    method: "GET",
    path: "/v1/jobs/:jobId/logs",
    summary: "Output of all attempts, in the order it arrived",
    access: read,
    params: jobParams,
    query: exact({ after: Type.Optional(cursor), limit }),
    reply: logPage,
    errors: ["not_found"],
  }),
  jobLogTail: defineRoute({
    method: "GET",
    path: "/v1/jobs/:jobId/logs/tail",
    summary: "The same, live, until the job has ended",
    access: read,
    params: jobParams,
    query: exact({ after: Type.Optional(cursor) }),
    reply: logPage,
    stream: true,
    errors: ["not_found"],
  }),

  tokenCreate: defineRoute({
    method: "POST",
    path: "/v1/tokens",
    summary: "Make an API token; its secret is shown once",
    access: admin,
    body: tokenCreation,
    status: 201,
    reply: createdToken,
    errors: ["conflict", "forbidden"],
  }),
  tokenList: defineRoute({
    method: "GET",
    path: "/v1/tokens",
    summary: "API tokens",
    access: read,
    reply: page(token),
    errors: [],
  }),
  tokenRevoke: defineRoute({
    method: "POST",
    path: "/v1/tokens/:credentialId/revoke",
    summary: "Revoke a token; takes effect on the next request",
    access: admin,
    params: exact({ credentialId: id("cred") }),
    reply: token,
    errors: ["not_found", "conflict"],
  }),
  auditList: defineRoute({
    method: "GET",
    path: "/v1/audit",
    summary: "Everything that changed authority, newest first",
    access: admin,
    query: exact({ limit, cursor: Type.Optional(id("aud")) }),
    reply: page(auditEntry),
    errors: [],
  }),

  nodePair: defineRoute({
    method: "POST",
    path: "/v1/node/pair",
    summary: "Enrol this machine",
    access: { kind: "pairing" },
    body: pairRequest,
    status: 201,
    reply: pairReply,
    errors: ["pairing_code_unknown", "pairing_code_used", "pairing_code_expired", "node_name_taken", "conflict"],
  }),
  nodeHello: defineRoute({
    method: "POST",
    path: "/v1/node/hello",
    summary: "Begin a session: the agent has started",
    access: heartbeat,
    body: helloRequest,
    reply: helloReply,
    errors: ["node_retired"],
  }),
  nodeHeartbeat: defineRoute({
    method: "POST",
    path: "/v1/node/heartbeat",
    summary: "The node is alive, and this is what it has",
    access: heartbeat,
    body: heartbeatRequest,
    reply: heartbeatReply,
    errors: ["session_superseded", "node_retired"],
  }),
  nodeClaim: defineRoute({
    method: "POST",
    path: "/v1/node/claims",
    summary: "Wait for work and lease it",
    access: claim,
    body: claimRequest,
    reply: claimReply,
    errors: ["session_superseded", "node_retired"],
  }),
  nodeStarts: defineRoute({
    method: "POST",
    path: "/v1/node/starts",
    summary: "These leases have begun to run",
    access: report,
    body: startsRequest,
    reply: verdicts,
    errors: ["session_superseded"],
  }),
  nodeRenewals: defineRoute({
    method: "POST",
    path: "/v1/node/renewals",
    summary: "Keep these leases",
    access: report,
    body: renewalsRequest,
    reply: renewalsReply,
    errors: ["session_superseded"],
  }),
  nodeEnding: defineRoute({
    method: "POST",
    path: "/v1/node/endings",
    summary: "How an attempt ended",
    access: report,
    body: endingRequest,
    reply: endingReply,
    errors: ["session_superseded"],
  }),
  nodeLog: defineRoute({
    method: "POST",
    path: "/v1/node/logs",
    summary: "A chunk of an attempt's output",
    access: report,
    body: logRequest,
    reply: logReply,
    errors: ["session_superseded"],
  }),
} as const;

export type RouteName = keyof typeof routes;
export type RouteOf<Name extends RouteName> = (typeof routes)[Name];
