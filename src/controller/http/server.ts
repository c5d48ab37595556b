// SPDX-License-Identifier: Apache-2.0
// The HTTP surface, made from the route table. A route without a declared access rule does not start, because it has none
// in its type; a client's mistake is a 4xx with every fault and its place; a 5xx carries no detail.

import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { Failure, type Fault, messageOf } from "../../std/errors.ts";
import { parseJson } from "../../std/json.ts";
import { BODY_BYTES_MAX, PAIRING_CALLS_PER_MINUTE, SIGN_INS_PER_MINUTE } from "../../protocol/limits.ts";
import { IDEMPOTENCY_HEADER, PAIRING_CODE_HEADER, type Route } from "../../protocol/route.ts";
import { compareVersions, VERSION_HEADER } from "../../protocol/version.ts";
import { type RouteName, routes } from "../../protocol/routes.ts";
import type { Context } from "../context.ts";
import { writeCookie } from "../access/browser-cookie.ts";
import { authorise } from "../access/authorise.ts";
import { actorOf, type Caller } from "../access/credential.ts";
import { observe } from "./observe.ts";
import { addPage } from "./page.ts";
import { RateLimit } from "./rate-limit.ts";
import type { BrowserCookie, Handlers } from "./reply.ts";
import { pathOf, sendError } from "./send-error.ts";
import { sendStream } from "./stream.ts";
import { compile, type Validator } from "./validate.ts";

type LooseHandler = (call: Record<string, unknown>) => Promise<unknown>;

export type ServerOptions = {
  readonly context: Context;
  readonly handlers: Handlers;
  /** Aborts when the controller stops: ends long polls and streams. */
  readonly stopping: AbortSignal;
  /** The built page; without it the API alone is served, and / says how to build it. */
  readonly pageDirectory: string | undefined;
  /** Over TLS with this; else plain. */
  readonly keyPair?: KeyPair | undefined;
};

/** PEM. */
export type KeyPair = { readonly key: string; readonly cert: string };

/** Builds the server; the caller listens and closes it. */
export function buildServer(options: ServerOptions): FastifyInstance {
  const { context } = options;
  const { keyPair } = options;
  const server = fastify({
    // Typed as plain HTTP: nothing here depends on which it is.
    ...(keyPair === undefined ? {} : { https: { ...keyPair, minVersion: "TLSv1.2" as const } }),
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    genReqId: () => Buffer.from(context.random.bytes(9)).toString("base64url"),
    forceCloseConnections: true,
    keepAliveTimeout: 72_000,
    requestTimeout: 60_000,
    frameworkErrors: (error, request, reply) => void sendError(context, request, reply, error),
    routerOptions: { maxParamLength: 256 },
  });
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) => {
    try {
      done(null, parseJson(String(body)));
    } catch (error) {
      done(new Failure("invalid_request", `the body is not JSON: ${messageOf(error)}`, { cause: error }));
    }
  });
  server.setErrorHandler((error, request, reply) => void sendError(context, request, reply, error));
  observe(server, context);
  addPage(server, options.pageDirectory, (request, reply) =>
    sendError(
      context,
      request,
      reply,
      new Failure("not_found", `there is no ${request.method} ${pathOf(request)} here`),
    ),
  );
  const limits = {
    // A bootstrap reports each of its phases and asks until its node is online.
    pairing: new RateLimit(context.clock, { perMinute: PAIRING_CALLS_PER_MINUTE, what: "this address" }),
    "sign-in": new RateLimit(context.clock, { perMinute: 3 * SIGN_INS_PER_MINUTE, what: "this address" }),
  };
  for (const name of Object.keys(routes) as RouteName[]) {
    const handler = options.handlers[name] as unknown as LooseHandler;
    addRoute(server, { name, route: routes[name], handler, limits }, options);
  }
  return server;
}

type Added = {
  readonly name: RouteName;
  readonly route: Route;
  readonly handler: LooseHandler;
  readonly limits: Readonly<Record<"pairing" | "sign-in", RateLimit>>;
};

function addRoute(server: FastifyInstance, added: Added, options: ServerOptions): void {
  const { route, handler } = added;
  const validators = (["params", "query", "body"] as const).map((part) => {
    const schema = part === "body" ? route.body : (route[part] ?? { type: "object", additionalProperties: false });
    return [part, schema === undefined ? undefined : compile(part, schema)] as const;
  });
  server.route({
    method: route.method,
    url: route.path,
    exposeHeadRoute: route.stream !== true && route.file !== true,
    config: { name: added.name },
    handler: async (request, reply) => {
      const caller = await admit(options.context, added, request);
      if (caller !== undefined) request.actor = actorOf(caller);
      const parts = { params: request.params, query: request.query, body: request.body ?? {} };
      checkParts(validators, parts, { request, route, version: options.context.config.version });
      const signal = AbortSignal.any([goneSignal(reply), options.stopping]);
      const answer = await handler({ ...parts, caller, signal, address: request.ip, ...headersOf(route, request) });
      if (route.stream === true) return sendStream(reply, answer as AsyncGenerator<unknown>, signal);
      reply.header("cache-control", "no-store");
      if (route.text !== undefined) return reply.type(route.text).send(answer);
      return sendAnswer(request, reply, route, answer);
    },
  });
}

/** An answer may be wrapped: an idempotent repeat, or one that sets a cookie. */
function sendAnswer(request: FastifyRequest, reply: FastifyReply, route: Route, answer: unknown): FastifyReply {
  const status = route.status ?? 200;
  if (typeof answer !== "object" || answer === null) return reply.code(status).send(answer);
  if ("repeated" in answer) return reply.code(200).send(answer.repeated);
  if (!("cookie" in answer && "reply" in answer)) return reply.code(status).send(answer);
  const { secret, lifeMs } = answer.cookie as BrowserCookie;
  const isHttps = request.protocol === "https" || request.headers.origin?.startsWith("https:") === true;
  reply.header("set-cookie", writeCookie(secret, lifeMs, { host: request.headers.host, isHttps }));
  return reply.code(status).send(answer.reply);
}

function admit(context: Context, added: Added, request: FastifyRequest): Promise<Caller | undefined> {
  const { access } = added.route;
  if (access.kind === "pairing" || access.kind === "sign-in") added.limits[access.kind].take(request.ip);
  return authorise(context, access, request);
}

type Parts = Readonly<Record<"params" | "query" | "body", unknown>>;

function checkParts(
  validators: readonly (readonly [keyof Parts, Validator | undefined])[],
  parts: Parts,
  { request, route, version }: { request: FastifyRequest; route: Route; version: string },
): void {
  const faults: Fault[] = validators.flatMap(([part, check]) => check?.(parts[part]) ?? []);
  const takesNoBody = validators.some(([part, check]) => part === "body" && check === undefined);
  if (takesNoBody && request.method === "POST") faults.push(...emptyBody(parts.body));
  if (faults.length > 0) {
    const first = faults[0];
    if (route.access.kind === "node") refuseOtherVersion(request.headers[VERSION_HEADER], version);
    const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : "";
    throw new Failure("invalid_request", `${first?.place} ${first?.problem}${more}`, { details: faults });
  }
}

/** A node's program that is not understood is told which side to update; of the same version it is a mistake like any other. */
function refuseOtherVersion(given: unknown, own: string): void {
  const order = typeof given === "string" ? (compareVersions(given, own) ?? 0) : 0;
  if (order < 0)
    throw new Failure(
      "agent_too_old",
      `this controller is ${own} and does not understand an agent of ${String(given)}`,
    );
  if (order > 0)
    throw new Failure(
      "controller_too_old",
      `this controller is ${own} and does not understand an agent of ${String(given)}`,
    );
}

function headersOf(
  route: Route,
  request: FastifyRequest,
): {
  idempotencyKey: string | undefined;
  pairingCode: string | undefined;
  userAgent: string | undefined;
} {
  const key = request.headers[IDEMPOTENCY_HEADER];
  const code = request.headers[PAIRING_CODE_HEADER];
  if (key !== undefined && (typeof key !== "string" || !/^[\x21-\x7e]{1,255}$/.test(key))) {
    throw new Failure(
      "invalid_request",
      "the Idempotency-Key header must be 1 to 255 printable ASCII characters without spaces",
      {
        details: [
          {
            place: `header ${IDEMPOTENCY_HEADER}`,
            problem: "must be 1 to 255 printable ASCII characters without spaces",
          },
        ],
      },
    );
  }
  return {
    idempotencyKey: route.idempotent === true && typeof key === "string" ? key : undefined,
    pairingCode: typeof code === "string" ? code : undefined,
    userAgent: request.headers["user-agent"]?.slice(0, 512),
  };
}

/** A route without a body takes none, or an empty object. */
function emptyBody(body: unknown): readonly Fault[] {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    return [{ place: "/", problem: "must be empty or an empty object" }];
  }
  return Object.keys(body).map((key) => ({ place: `/${key}`, problem: "is not a field that is known here" }));
}

/** Aborts when the client has hung up before its answer was complete. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  // It may have hung up while its credential was looked up.
  if (reply.raw.destroyed) gone.abort();
  return gone.signal;
}
