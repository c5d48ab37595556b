// SPDX-License-Identifier: Apache-2.0
// The shape of a route: method, path, who may call it, what goes in and out, and which errors it may answer with.
// The server, the typed client and openapi.json are made from the same table, so none of them can say something else.

import type { Static, TObject, TSchema } from "typebox";
import type { NodeScope } from "./access-schema.ts";
import type { ErrorCode } from "./errors.ts";
import type { PeopleScope } from "./user.ts";

export type Access =
  /** Anyone; nothing about an organisation is told. */
  | { readonly kind: "public" }
  /** A pairing code in the header holdfast-pairing-code. */
  | { readonly kind: "pairing" }
  /** A pairing code that was not used by another machine, or a node's credential: for what a node has to fetch. */
  | { readonly kind: "enrolling" }
  /** Whoever wants to sign in; limited by address. */
  | { readonly kind: "sign-in" }
  | { readonly kind: "people"; readonly scope: PeopleScope }
  | { readonly kind: "node"; readonly scope: NodeScope };

export type Route<
  Params extends TObject = TObject,
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
  Reply extends TSchema = TSchema,
  Who extends Access = Access,
> = {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly summary: string;
  readonly access: Who;
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  readonly reply: Reply;
  /** Success status; 200 unless said. 201 where something was made, 200 on an idempotent repeat. */
  readonly status?: 200 | 201;
  /** Answers as text/event-stream, each event's data one `reply`. */
  readonly stream?: true;
  /** Answers with text in this type instead of JSON. */
  readonly text?: string;
  /** The text is the content of a file, streamed. */
  readonly file?: true;
  /** Takes an Idempotency-Key header. */
  readonly idempotent?: true;
  /** Beyond what every route may answer: invalid_request, unauthenticated, forbidden, rate_limited, internal … */
  readonly errors: readonly ErrorCode[];
};

export const defineRoute = <
  Params extends TObject,
  Query extends TObject,
  Body extends TSchema,
  Reply extends TSchema,
  const Who extends Access,
>(
  route: Route<Params, Query, Body, Reply, Who>,
): Route<Params, Query, Body, Reply, Who> => route;

export type ParamsOf<R> = R extends { readonly params?: infer P } ? (P extends TObject ? Static<P> : never) : never;
export type QueryOf<R> = R extends { readonly query?: infer Q } ? (Q extends TObject ? Static<Q> : never) : never;
export type BodyOf<R> = R extends { readonly body?: infer B } ? (B extends TSchema ? Static<B> : never) : never;
export type ReplyOf<R> = R extends { readonly reply: infer T } ? (T extends TSchema ? Static<T> : never) : never;

/** Errors that any route may answer with. */
export const commonErrors: readonly ErrorCode[] = [
  "invalid_request",
  "payload_too_large",
  "unsupported_media_type",
  "rate_limited",
  "internal",
  "stopping",
  "database_unavailable",
];

/** Beside those, errors that any route of nodes may answer with. */
export const nodeErrors: readonly ErrorCode[] = ["agent_too_old", "controller_too_old"];

export const PAIRING_CODE_HEADER = "holdfast-pairing-code";
export const IDEMPOTENCY_HEADER = "idempotency-key";
/** Proves that a change by a browser comes from our own page; see Who. */
export const CSRF_HEADER = "holdfast-csrf";
