// SPDX-License-Identifier: Apache-2.0
// The HTTP surface, made from the route table. A route without a declared access rule does not start, because it has none
// in its type; a client's mistake is a 4xx with every fault and its place; a 5xx carries no detail.

import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { codeOf, Failure, type Fault, messageOf } from "../../std/errors.ts";
import { parseJson } from "../../std/json.ts";
import { errorRow, isErrorCode } from "../../protocol/errors.ts";
import { BODY_BYTES_MAX } from "../../protocol/limits.ts";
import { IDEMPOTENCY_HEADER, PAIRING_CODE_HEADER, type Route } from "../../protocol/route.ts";
import { type RouteName, routes } from "../../protocol/routes.ts";
import type { Context } from "../context.ts";
import { authorise } from "../access/authorise.ts";
import { RateLimit } from "./rate-limit.ts";
import type { Handlers } from "./reply.ts";
import { sendStream } from "./stream.ts";
import { compile, type Validator } from "./validate.ts";

type LooseHandler = (call: Record<string, unknown>) => Promise<unknown>;

export type ServerOptions = {
  readonly context: Context;
  readonly handlers: Handlers;
  /** Aborts when the controller stops: ends long polls and streams. */
  readonly stopping: AbortSignal;
};

/** Builds the server; the caller listens and closes it. */
export function buildServer(options: ServerOptions): FastifyInstance {
  const { context } = options;
  const server = fastify({
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
  server.setNotFoundHandler((request, reply) =>
    sendError(
      context,
      request,
      reply,
      new Failure("not_found", `there is no ${request.method} ${pathOf(request)} here`),
    ),
  );
  const pairingLimit = new RateLimit(context.clock, { perMinute: 30 });
  for (const name of Object.keys(routes) as RouteName[]) {
    const handler = options.handlers[name] as unknown as LooseHandler;
    addRoute(server, { name, route: routes[name], handler, pairingLimit }, options);
  }
  return server;
}

type Added = {
  readonly name: RouteName;
  readonly route: Route;
  readonly handler: LooseHandler;
  readonly pairingLimit: RateLimit;
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
    exposeHeadRoute: route.stream !== true,
    handler: async (request, reply) => {
      const caller = await admit(options.context, added, request);
      const parts = { params: request.params, query: request.query, body: request.body ?? {} };
      checkParts(validators, parts, request);
      const signal = AbortSignal.any([goneSignal(reply), options.stopping]);
      const answer = await handler({ ...parts, caller, signal, ...headersOf(route, request) });
      if (route.stream === true) return sendStream(reply, answer as AsyncGenerator<unknown>, signal);
      reply.header("cache-control", "no-store");
      const isRepeat = typeof answer === "object" && answer !== null && "repeated" in answer;
      return reply.code(isRepeat ? 200 : (route.status ?? 200)).send(isRepeat ? answer.repeated : answer);
    },
  });
}

function admit(context: Context, added: Added, request: FastifyRequest): Promise<unknown> {
  if (added.route.access.kind === "pairing") added.pairingLimit.take(request.ip);
  return authorise(context, added.route.access, request.headers.authorization);
}

type Parts = Readonly<Record<"params" | "query" | "body", unknown>>;

function checkParts(
  validators: readonly (readonly [keyof Parts, Validator | undefined])[],
  parts: Parts,
  request: FastifyRequest,
): void {
  const faults: Fault[] = validators.flatMap(([part, check]) => check?.(parts[part]) ?? []);
  const takesNoBody = validators.some(([part, check]) => part === "body" && check === undefined);
  if (takesNoBody && request.method === "POST") faults.push(...emptyBody(parts.body));
  if (faults.length > 0) {
    const first = faults[0];
    const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : "";
    throw new Failure("invalid_request", `${first?.place} ${first?.problem}${more}`, { details: faults });
  }
}

function headersOf(
  route: Route,
  request: FastifyRequest,
): { idempotencyKey: string | undefined; pairingCode: string | undefined } {
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

function sendError(context: Context, request: FastifyRequest, reply: FastifyReply, error: unknown): FastifyReply {
  const failure = toFailure(error);
  const row = errorRow(failure.code);
  const status = row.status === 0 ? 500 : row.status;
  if (status >= 500)
    context.log.error(
      {
        requestId: request.id,
        method: request.method,
        path: pathOf(request),
        error: messageOf(error),
        stack: stackOf(error),
      },
      "request failed",
    );
  const message = status === 500 ? "something went wrong inside the controller" : failure.message;
  const details = status < 500 && failure.details.length > 0 ? { details: failure.details } : {};
  if (row.retry === "later" && status < 500) reply.header("retry-after", "10");
  if (status === 401) reply.header("www-authenticate", 'Bearer realm="holdfast"');
  return reply
    .code(status)
    .send({ code: status === 500 ? "internal" : failure.code, message, requestId: request.id, ...details });
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error && !(error instanceof Failure) ? error.stack : undefined;
}

/** Fastify's own refusals in our words. */
function toFailure(error: unknown): Failure {
  if (error instanceof Failure && isErrorCode(error.code)) return error;
  const code = codeOf(error);
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE")
    return new Failure("payload_too_large", `the body is larger than ${BODY_BYTES_MAX} bytes`);
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE")
    return new Failure("unsupported_media_type", "the body must be application/json");
  if (code === "FST_ERR_BAD_URL" || code === "FST_ERR_MAX_PARAM_LENGTH")
    return new Failure("not_found", "there is no such address here");
  const status = typeof error === "object" && error !== null && "statusCode" in error ? error.statusCode : undefined;
  if (typeof status === "number" && status >= 400 && status < 500)
    return new Failure("invalid_request", messageOf(error), { cause: error });
  return new Failure("internal", messageOf(error), { cause: error });
}

/** Without the query, which a log has no business with. */
function pathOf(request: FastifyRequest): string {
  return request.url.split("?")[0] ?? "";
}
