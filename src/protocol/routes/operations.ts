// SPDX-License-Identifier: Apache-2.0
// What machines and operators ask a controller about itself, and the overview of a fleet.

import Type from "typebox";
import { auditEntry, check, overview, throughput } from "../access-schema.ts";
import { exact, id, page, time } from "../common-schema.ts";

import { PAGE_MAX } from "../limits.ts";

import { defineRoute } from "../route.ts";
import { admin, read } from "./access.ts";

const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_MAX }));

export const operationRoutes = {
  health: defineRoute({
    method: "GET",
    path: "/v1/health",
    summary: "Whether the controller answers",
    access: { kind: "public" },
    reply: exact({ status: Type.Literal("ok"), version: Type.String(), now: time }),
    errors: [],
  }),
  ready: defineRoute({
    method: "GET",
    path: "/v1/ready",
    summary: "Whether the controller can serve: database, schema, loops",
    access: { kind: "public" },
    reply: exact({ status: Type.Literal("ready"), version: Type.String() }),
    errors: ["not_ready"],
  }),
  metrics: defineRoute({
    method: "GET",
    path: "/metrics",
    summary: "This controller and the caller's organisation in numbers, for Prometheus",
    access: read,
    reply: Type.String(),
    text: "text/plain; version=0.0.4; charset=utf-8",
    errors: [],
  }),
  checks: defineRoute({
    method: "GET",
    path: "/v1/checks",
    summary: "What doctor asks the controller: each finding with what to do",
    access: admin,
    reply: exact({ checks: Type.Array(check) }),
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
  changes: defineRoute({
    method: "GET",
    path: "/v1/changes",
    summary: "The overview, live: once at the start, then whenever something changed",
    access: read,
    reply: overview,
    stream: true,
    errors: [],
  }),
  throughput: defineRoute({
    method: "GET",
    path: "/v1/throughput",
    summary: "Jobs that ended, minute by minute",
    access: read,
    query: exact({ minutes: Type.Optional(Type.Integer({ minimum: 1, maximum: 1440, description: "default 60" })) }),
    reply: throughput,
    errors: [],
  }),
  auditList: defineRoute({
    method: "GET",
    path: "/v1/audit",
    summary: "Everything that changed authority, newest first",
    access: admin,
    query: exact({
      limit,
      cursor: Type.Optional(id("aud")),
      action: Type.Optional(
        Type.String({ pattern: "^[a-z.-]{1,64}$", description: "such as node.retire, or its first part" }),
      ),
      subject: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    }),
    reply: page(auditEntry),
    errors: [],
  }),
} as const;
