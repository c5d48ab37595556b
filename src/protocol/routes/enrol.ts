// SPDX-License-Identifier: Apache-2.0
// How a machine becomes a node: the script, what it fetches, and who sees how far it is.

import Type from "typebox";
import { exact, id, name, page } from "../common-schema.ts";
import {
  architectureQuery,
  nodeCertificate,
  pairing,
  pairingCode,
  pairingProgress,
  phaseReport,
} from "../enrol-schema.ts";
import { defineRoute } from "../route.ts";
import { admin, heartbeat, read } from "./access.ts";

export const enrolRoutes = {
  pairingCreate: defineRoute({
    method: "POST",
    path: "/v1/pairing-codes",
    summary: "Make a single-use code that pairs one machine under this name, or in the place of the node that has it",
    access: admin,
    body: exact({ name, takeOver: Type.Optional(Type.Boolean()) }),
    status: 201,
    reply: pairingCode,
    errors: ["node_name_taken", "not_found"],
  }),
  pairingList: defineRoute({
    method: "GET",
    path: "/v1/pairing-codes",
    summary: "The newest pairings and how far each is, without their codes",
    access: read,
    reply: page(pairing),
    errors: [],
  }),
  pairingShow: defineRoute({
    method: "GET",
    path: "/v1/pairing-codes/:pairingId",
    summary: "How far one pairing is",
    access: read,
    params: exact({ pairingId: id("pair") }),
    reply: pairing,
    errors: ["not_found"],
  }),
  bootstrapScript: defineRoute({
    method: "GET",
    path: "/v1/bootstrap.sh",
    summary: "The script that enrols a machine; it holds no secret and is the same for everybody",
    access: { kind: "public" },
    reply: Type.String(),
    text: "text/x-shellscript; charset=utf-8",
    errors: ["bundle_missing"],
  }),
  authorityShow: defineRoute({
    method: "GET",
    path: "/v1/authority.pem",
    summary: "The certificate of the fleet's authority",
    access: { kind: "public" },
    reply: Type.String(),
    text: "application/x-pem-file",
    errors: ["not_found"],
  }),
  agentFile: defineRoute({
    method: "GET",
    path: "/v1/node/agent",
    summary: "The agent for one architecture, a gzipped tar",
    access: { kind: "enrolling" },
    query: architectureQuery,
    reply: Type.String(),
    text: "application/gzip",
    file: true,
    errors: ["bundle_missing"],
  }),
  runtimeFile: defineRoute({
    method: "GET",
    path: "/v1/node/runtime",
    summary: "The runtime for one architecture, one program",
    access: { kind: "enrolling" },
    query: architectureQuery,
    reply: Type.String(),
    text: "application/octet-stream",
    file: true,
    errors: ["bundle_missing"],
  }),
  pairingReport: defineRoute({
    method: "POST",
    path: "/v1/node/pairing",
    summary: "The bootstrap script tells a phase, and is told how far the controller sees it",
    access: { kind: "pairing" },
    body: exact({ report: Type.Optional(phaseReport) }),
    reply: pairingProgress,
    errors: ["pairing_code_unknown"],
  }),
  nodeLeave: defineRoute({
    method: "POST",
    path: "/v1/node/leave",
    summary: "The node is being uninstalled: its leases return, and people see that it left",
    access: heartbeat,
    reply: exact({}),
    errors: [],
  }),
  nodeCertificate: defineRoute({
    method: "POST",
    path: "/v1/node/certificate",
    summary: "A certificate under the fleet's authority for the node's own key",
    access: heartbeat,
    reply: nodeCertificate,
    errors: ["conflict"],
  }),
} as const;
