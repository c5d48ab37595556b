// SPDX-License-Identifier: Apache-2.0
// A typed client made from the route table: nothing is generated, nothing can drift. An error answer becomes a Failure
// with the server's code; a network fault becomes controller_unreachable. The credential travels in a header, never in a URL.

import { Failure, messageOf } from "../std/errors.ts";
import { isErrorCode } from "../protocol/errors.ts";
import {
  type BodyOf,
  CSRF_HEADER,
  IDEMPOTENCY_HEADER,
  PAIRING_CODE_HEADER,
  type ParamsOf,
  type QueryOf,
  type ReplyOf,
  type Route,
} from "../protocol/route.ts";
import { VERSION_HEADER } from "../protocol/version.ts";
import { type RouteName, type RouteOf, routes } from "../protocol/routes.ts";
import { readEvents } from "./events.ts";

type Part<Key extends string, Value, Declared> = Declared extends { readonly [K in Key]: unknown }
  ? { readonly [K in Key]: Value }
  : { readonly [K in Key]?: never };

export type Input<Name extends RouteName> = Part<"params", ParamsOf<RouteOf<Name>>, DeclaredParts<Name>> &
  Part<"body", BodyOf<RouteOf<Name>>, DeclaredParts<Name>> & {
    readonly query?: QueryOf<RouteOf<Name>>;
    readonly idempotencyKey?: string;
    readonly pairingCode?: string;
  };

/** Which of params and body the route really declares: their types are unknown-wide when it does not. */
type DeclaredParts<Name extends RouteName> = {
  [Key in "params" | "body" as [Exclude<RouteOf<Name>[Key & keyof RouteOf<Name>], undefined>] extends [never]
    ? never
    : IsWide<Exclude<RouteOf<Name>[Key & keyof RouteOf<Name>], undefined>> extends true
      ? never
      : Key]: true;
};

/** defineRoute infers the constraint itself for a part that is left out. */
type IsWide<Schema> = import("typebox").TObject extends Schema ? true : false;

export type CallOptions = {
  readonly signal?: AbortSignal;
  /** For the whole answer; default 30 s. A long poll adds its own wait. */
  readonly timeoutMs?: number;
};

export type StreamOptions = {
  readonly signal?: AbortSignal;
  /** Called whenever something arrives, the keep-alives between events included: silence means a dead connection. */
  readonly onAlive?: () => void;
};

export type ClientOptions = {
  /** Such as http://127.0.0.1:7440, without a path. */
  readonly baseUrl: string;
  readonly credential?: string;
  /** Of the program that calls: when the two sides do not understand each other the older one is told. */
  readonly version?: string;
  /** In a browser the credential is a cookie: what proves that a change comes from our own page, once it is known. */
  readonly csrfToken?: () => string | null;
  readonly fetch?: typeof fetch;
};

const TIMEOUT_MS = 30_000;
const DOWNLOAD_TIMEOUT_MS = 300_000;

export type Client = {
  readonly baseUrl: string;
  call<Name extends RouteName>(name: Name, input: Input<Name>, options?: CallOptions): Promise<ReplyOf<RouteOf<Name>>>;
  /** The content of a file, as it comes; the caller checks what it got. */
  download<Name extends RouteName>(
    name: Name,
    input: Input<Name>,
    options?: CallOptions,
  ): Promise<ReadableStream<Uint8Array>>;
  /** Server-sent events; ends when the server ends the stream, throws when the connection breaks. */
  stream<Name extends RouteName>(
    name: Name,
    input: Input<Name>,
    options?: StreamOptions,
  ): AsyncGenerator<ReplyOf<RouteOf<Name>>, void, undefined>;
};

type LooseInput = {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly idempotencyKey?: string;
  readonly pairingCode?: string;
};

export function createClient(options: ClientOptions): Client {
  const send = options.fetch ?? fetch;

  async function request(route: Route, input: LooseInput, signal: AbortSignal): Promise<Response> {
    const url = addressOf(options.baseUrl, route, input);
    const headers: Record<string, string> = {
      accept: route.stream === true ? "text/event-stream" : "application/json",
    };
    if (options.credential !== undefined) headers["authorization"] = `Bearer ${options.credential}`;
    if (options.version !== undefined) headers[VERSION_HEADER] = options.version;
    const csrfToken = route.method === "GET" ? null : (options.csrfToken?.() ?? null);
    if (csrfToken !== null) headers[CSRF_HEADER] = csrfToken;
    if (input.idempotencyKey !== undefined) headers[IDEMPOTENCY_HEADER] = input.idempotencyKey;
    if (input.pairingCode !== undefined) headers[PAIRING_CODE_HEADER] = input.pairingCode;
    const body = route.body === undefined ? undefined : JSON.stringify(input.body ?? {});
    if (body !== undefined) headers["content-type"] = "application/json";
    try {
      return await send(url, {
        method: route.method,
        headers,
        signal,
        redirect: "error",
        ...(body === undefined ? {} : { body }),
      });
    } catch (error) {
      throw unreachableFailure(options.baseUrl, error);
    }
  }

  return {
    baseUrl: options.baseUrl,
    async call(name, input, callOptions = {}) {
      const timeout = AbortSignal.timeout(callOptions.timeoutMs ?? TIMEOUT_MS);
      const signal = callOptions.signal === undefined ? timeout : AbortSignal.any([callOptions.signal, timeout]);
      const response = await request(routes[name], input, signal);
      const body = await readBody(response, options.baseUrl);
      if (!response.ok) throw failureOf(response.status, body, options.baseUrl);
      return body as ReplyOf<RouteOf<typeof name>>;
    },
    async download(name, input, callOptions = {}) {
      const timeout = AbortSignal.timeout(callOptions.timeoutMs ?? DOWNLOAD_TIMEOUT_MS);
      const signal = callOptions.signal === undefined ? timeout : AbortSignal.any([callOptions.signal, timeout]);
      const response = await request(routes[name], input, signal);
      if (response.ok && response.body !== null) return response.body;
      throw failureOf(response.status, await readBody(response, options.baseUrl), options.baseUrl);
    },
    async *stream(name, input, callOptions = {}) {
      const signal = callOptions.signal ?? new AbortController().signal;
      const response = await request(routes[name], input, signal);
      if (!response.ok || response.body === null) {
        throw failureOf(response.status, await readBody(response, options.baseUrl), options.baseUrl);
      }
      try {
        for await (const data of readEvents(response.body, callOptions.onAlive))
          yield JSON.parse(data) as ReplyOf<RouteOf<typeof name>>;
      } catch (error) {
        throw unreachableFailure(options.baseUrl, error);
      }
    },
  };
}

function addressOf(baseUrl: string, route: Route, input: LooseInput): string {
  const path = route.path.replace(/:(\w+)/g, (_, key: string) => encodeURIComponent(String(input.params?.[key])));
  const url = new URL(path, baseUrl);
  for (const [key, value] of Object.entries(input.query ?? {})) {
    if (value !== undefined) url.searchParams.set(key, String(value));
  }
  return url.href;
}

async function readBody(response: Response, baseUrl: string): Promise<unknown> {
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    throw unreachableFailure(baseUrl, error);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Failure("bad_answer", `${baseUrl} answered ${response.status} with something that is not JSON`, {
      cause: error,
    });
  }
}

/** A body that a Holdfast controller would not send means that the address is somebody else's. */
function failureOf(status: number, body: unknown, baseUrl: string): Failure {
  if (typeof body === "object" && body !== null && "code" in body && "message" in body) {
    const { code, message } = body;
    const details = "details" in body && Array.isArray(body.details) ? (body.details as Failure["details"]) : [];
    if (typeof code === "string" && typeof message === "string" && isErrorCode(code)) {
      const requestId = "requestId" in body && typeof body.requestId === "string" ? { requestId: body.requestId } : {};
      return new Failure(code, message, { details, ...requestId });
    }
    if (typeof code === "string")
      return new Failure("bad_answer", `${baseUrl} answered ${status} ${code}: ${String(message)}`);
  }
  return new Failure("bad_answer", `${baseUrl} answered ${status}, but not as a Holdfast controller`);
}

function unreachableFailure(baseUrl: string, error: unknown): Failure {
  return new Failure("controller_unreachable", `${baseUrl} does not answer: ${messageOf(error)}`, { cause: error });
}
