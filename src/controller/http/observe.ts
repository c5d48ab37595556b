// SPDX-License-Identifier: Apache-2.0
// Every request: an id in its answer and in the log, a line when it is done, a count and a duration for /metrics. What an
// agent says every few seconds is told only at debug level; a path is logged without its query, a header never.

import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Context } from "../context.ts";
import { pathOf } from "./send-error.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who called, once it is known. */
    actor: string | undefined;
  }
  interface FastifyContextConfig {
    /** Of the route table. */
    name?: string;
  }
}

/** Steady traffic: one line each would bury the rest. */
const QUIET = new Set([
  "health",
  "ready",
  "metrics",
  "nodeHeartbeat",
  "nodeClaim",
  "nodeRenewals",
  "nodeStarts",
  "nodeLog",
]);

export function observe(server: FastifyInstance, context: Context): void {
  server.decorateRequest("actor", undefined);
  server.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    done();
  });
  server.addHook("onResponse", (request, reply, done) => {
    const route = request.routeOptions.config.name ?? "none";
    const seconds = reply.elapsedTime / 1000;
    context.metrics.request({ route, method: request.method, status: reply.statusCode, seconds });
    const line = {
      requestId: request.id,
      method: request.method,
      path: pathOf(request),
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
      ...(request.actor === undefined ? {} : { actor: request.actor }),
    };
    if (isQuiet(request, route)) context.log.debug(line, "request");
    else context.log.info(line, "request");
    done();
  });
}

function isQuiet(request: FastifyRequest, route: string): boolean {
  return QUIET.has(route) || request.method === "GET" || request.method === "HEAD";
}
