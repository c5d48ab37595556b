// SPDX-License-Identifier: Apache-2.0
// The surface, pinned: which routes are a node's, which are people's, and that no body can name an organisation.

import assert from "node:assert/strict";
import { test } from "node:test";
import { errorRow, errorTable } from "./errors.ts";
import type { Route } from "./route.ts";
import { routes } from "./routes.ts";

const table = Object.entries(routes) as [string, Route][];
const pathsOf = (kind: Route["access"]["kind"]): string[] =>
  table
    .filter(([, route]) => route.access.kind === kind)
    .map(([, route]) => `${route.method} ${route.path}`)
    .sort();

const peopleRoutes = [
  "GET /metrics",
  "GET /v1/audit",
  "GET /v1/changes",
  "GET /v1/checks",
  "GET /v1/credentials",
  "GET /v1/jobs",
  "GET /v1/jobs/:jobId",
  "GET /v1/jobs/:jobId/events",
  "GET /v1/jobs/:jobId/logs",
  "GET /v1/jobs/:jobId/logs/tail",
  "GET /v1/jobs/:jobId/why",
  "GET /v1/models",
  "GET /v1/nodes",
  "GET /v1/nodes/:nodeId",
  "GET /v1/overview",
  "GET /v1/pairing-codes",
  "GET /v1/pairing-codes/:pairingId",
  "GET /v1/projects",
  "GET /v1/throughput",
  "GET /v1/tokens",
  "GET /v1/users",
  "GET /v1/whoami",
  "POST /v1/jobs",
  "POST /v1/jobs/:jobId/cancel",
  "POST /v1/login-links",
  "POST /v1/models",
  "POST /v1/models/:modelId/retire",
  "POST /v1/nodes/:nodeId/activate",
  "POST /v1/nodes/:nodeId/drain",
  "POST /v1/nodes/:nodeId/retire",
  "POST /v1/nodes/:nodeId/rotate",
  "POST /v1/nodes/:nodeId/scene",
  "POST /v1/pairing-codes",
  "POST /v1/password",
  "POST /v1/projects",
  "POST /v1/projects/:projectId/retire",
  "POST /v1/sign-out",
  "POST /v1/tokens",
  "POST /v1/tokens/:credentialId/revoke",
  "POST /v1/users",
  "POST /v1/users/:userId/disable",
  "POST /v1/users/:userId/enable",
  "POST /v1/users/:userId/role",
  "POST /v1/users/:userId/sign-out",
];

test("node routes and people routes are disjoint, and these are all of them", () => {
  assert.deepEqual(pathsOf("node"), [
    "GET /v1/node/self",
    "POST /v1/node/certificate",
    "POST /v1/node/claims",
    "POST /v1/node/credential",
    "POST /v1/node/endings",
    "POST /v1/node/heartbeat",
    "POST /v1/node/hello",
    "POST /v1/node/leave",
    "POST /v1/node/logs",
    "POST /v1/node/renewals",
    "POST /v1/node/starts",
  ]);
  assert.deepEqual(pathsOf("people"), peopleRoutes);
  assert.deepEqual(pathsOf("public"), [
    "GET /v1/authority.pem",
    "GET /v1/bootstrap.sh",
    "GET /v1/health",
    "GET /v1/ready",
  ]);
  assert.deepEqual(pathsOf("pairing"), ["POST /v1/node/pair", "POST /v1/node/pairing"]);
  assert.deepEqual(pathsOf("enrolling"), ["GET /v1/node/agent", "GET /v1/node/release", "GET /v1/node/runtime"]);
  assert.deepEqual(pathsOf("sign-in"), ["POST /v1/sign-in/link", "POST /v1/sign-in/password"]);
  const unique = new Set(table.map(([, route]) => `${route.method} ${route.path}`));
  assert.equal(unique.size, table.length);
});

test("every object that comes in refuses unknown fields, and none has a place for an organisation", () => {
  const seen: string[] = [];
  const walk = (schema: unknown, place: string): void => {
    if (typeof schema !== "object" || schema === null) return;
    const { type, properties, additionalProperties, patternProperties } = schema as Record<string, unknown>;
    if (type === "object" && patternProperties === undefined) {
      seen.push(place);
      assert.equal(additionalProperties, false, `${place} lets unknown fields through`);
      assert.ok(
        !Object.keys(properties ?? {}).some((key) => /organisation/i.test(key)),
        `${place} names an organisation`,
      );
    }
    for (const [key, value] of Object.entries(schema)) walk(value, `${place}/${key}`);
  };
  for (const [name, route] of table) {
    for (const part of ["params", "query", "body"] as const) walk(route[part], `${name}.${part}`);
  }
  assert.ok(seen.length > 20);
});

test("every error that a route names crosses HTTP", () => {
  for (const [name, route] of table)
    for (const code of route.errors) assert.ok(errorRow(code).status >= 400, `${name}: ${code}`);
});

test("every fault of a set-up has an exit code of its own", () => {
  const own = Object.entries(errorTable).filter(([, row]) => row.exit >= 79);
  assert.equal(
    new Set(own.map(([, row]) => row.exit)).size,
    own.length,
    JSON.stringify(own.map(([code, row]) => [row.exit, code])),
  );
});
