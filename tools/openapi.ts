// SPDX-License-Identifier: Apache-2.0
// Prints openapi.json (OpenAPI 3.1) from the route table. With --check it fails when the committed file is stale.
// Usage: node tools/openapi.ts [--check]

import fs from "node:fs";
import { errorBody } from "../src/protocol/common-schema.ts";
import { errorRow, type ErrorCode } from "../src/protocol/errors.ts";
import {
  commonErrors,
  nodeErrors,
  IDEMPOTENCY_HEADER,
  PAIRING_CODE_HEADER,
  type Route,
} from "../src/protocol/route.ts";
import { routes } from "../src/protocol/routes.ts";

const FILE = new URL("../openapi.json", import.meta.url);

type JsonObject = { [key: string]: unknown };

function errorsOf(route: Route): readonly ErrorCode[] {
  const access: readonly ErrorCode[] =
    route.access.kind === "public" || route.access.kind === "pairing" ? [] : ["unauthenticated", "forbidden"];
  const versions = route.access.kind === "node" ? nodeErrors : [];
  return [...new Set([...route.errors, ...access, ...versions, ...commonErrors])];
}

function parametersOf(route: Route): JsonObject[] {
  const of = (place: "path" | "query", schema: Route["params"]): JsonObject[] =>
    Object.entries(schema?.properties ?? {}).map(([name, property]) => ({
      name,
      in: place,
      required: place === "path" || ((schema?.required ?? []) as readonly string[]).includes(name),
      schema: property,
    }));
  const headers: JsonObject[] = [];
  if (route.idempotent === true)
    headers.push({
      name: IDEMPOTENCY_HEADER,
      in: "header",
      required: false,
      schema: { type: "string", maxLength: 255 },
    });
  const { kind } = route.access;
  if (kind === "pairing" || kind === "enrolling")
    headers.push({
      name: PAIRING_CODE_HEADER,
      in: "header",
      required: kind === "pairing",
      schema: { type: "string" },
    });
  return [...of("path", route.params), ...of("query", route.query), ...headers];
}

function responsesOf(route: Route): JsonObject {
  const media = route.stream === true ? "text/event-stream" : (route.text ?? "application/json");
  const success = { description: "Success", content: { [media]: { schema: route.reply } } };
  const responses: JsonObject = { [String(route.status ?? 200)]: success };
  if (route.idempotent === true || route.access.kind === "pairing")
    responses["200"] = { ...success, description: "A repeat: what the first request made" };
  const byStatus = Map.groupBy(errorsOf(route), (code) => errorRow(code).status);
  for (const [status, codes] of [...byStatus].sort(([a], [b]) => a - b)) {
    responses[String(status)] = {
      description: codes.map((code) => `${code}: ${errorRow(code).advice}`).join("\n"),
      content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
    };
  }
  return responses;
}

/** Any one of these; an empty one is nothing at all: a pairing code in its header does as well as a node's credential. */
function securityOf({ kind }: Route["access"]): JsonObject[] {
  if (kind === "people") return [{ token: [] }];
  if (kind === "node") return [{ nodeCredential: [] }];
  return kind === "enrolling" ? [{ nodeCredential: [] }, {}] : [];
}

function operationOf(name: string, route: Route): JsonObject {
  const { access } = route;
  const parameters = parametersOf(route);
  return {
    operationId: name,
    summary: route.summary,
    description: access.kind === "people" || access.kind === "node" ? `Needs the scope ${access.scope}.` : undefined,
    security: securityOf(access),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body === undefined
      ? {}
      : { requestBody: { required: true, content: { "application/json": { schema: route.body } } } }),
    responses: responsesOf(route),
  };
}

function render(): string {
  const paths: { [path: string]: JsonObject } = {};
  for (const [name, route] of Object.entries(routes) as [string, Route][]) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(name, route) };
  }
  const document = {
    openapi: "3.1.0",
    info: { title: "Holdfast", version: "1", license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
    paths,
    components: {
      schemas: { Error: errorBody },
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "An API token of a person: holdfast token create" },
        nodeCredential: {
          type: "http",
          scheme: "bearer",
          description: "The credential that a node drew for itself when it was paired",
        },
      },
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

const rendered = render();
if (process.argv.includes("--check")) {
  const committed = fs.existsSync(FILE) ? fs.readFileSync(FILE, "utf8") : "";
  if (committed !== rendered) {
    process.stderr.write("openapi.json is stale: run npm run openapi and commit it\n");
    process.exitCode = 1;
  }
} else {
  fs.writeFileSync(FILE, rendered);
}
