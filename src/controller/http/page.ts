// SPDX-License-Identifier: Apache-2.0
// Serves the built page at /: files by @fastify/static, and index.html for every other address of a person, because the page
// routes itself. Rule: no script, style, font or image from anywhere else, and nobody may frame it.

import fs from "node:fs";
import path from "node:path";
import fastifyStatic from "@fastify/static";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const NOT_BUILT =
  "<!doctype html><html lang=en><meta charset=utf-8><title>Holdfast</title>" +
  "<p>The page is not built on this machine: run <code>npm run web</code> in the checkout and start again. " +
  "The HTTP API and the command line work without it.";

type NotFound = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/** notFound answers every address that is neither a route, a file nor a person's. */
export function addPage(server: FastifyInstance, directory: string | undefined, notFound: NotFound): void {
  const isBuilt = directory !== undefined && fs.existsSync(path.join(directory, "index.html"));
  if (isBuilt) {
    void server.register(fastifyStatic, {
      root: directory,
      wildcard: false,
      cacheControl: false,
      setHeaders: (reply, file) => {
        reply.header("cache-control", isHashed(file) ? "public, max-age=31536000, immutable" : "no-cache");
        securityHeaders((name, value) => void reply.header(name, value));
      },
    });
  }
  server.setNotFoundHandler((request, reply) => {
    if (!isForPage(request)) return notFound(request, reply);
    securityHeaders((name, value) => void reply.header(name, value));
    reply.header("cache-control", "no-cache");
    if (isBuilt) return reply.sendFile("index.html");
    return reply.code(503).type("text/html; charset=utf-8").send(NOT_BUILT);
  });
}

function securityHeaders(set: (name: string, value: string) => void): void {
  set("content-security-policy", POLICY);
  set("x-content-type-options", "nosniff");
  set("referrer-policy", "no-referrer");
  set("x-frame-options", "DENY");
  set("cross-origin-opener-policy", "same-origin");
}

/** Vite puts a hash of the content into the names of what lies there. */
function isHashed(file: string): boolean {
  return path.basename(path.dirname(file)) === "assets";
}

/** A browser that was sent somewhere: it asks for HTML, and not below the API. */
function isForPage({ method, url, headers }: FastifyRequest): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  if (/^\/(v1|metrics|assets)(\/|\?|$)/.test(url)) return false;
  return headers.accept?.includes("text/html") === true;
}
