// SPDX-License-Identifier: Apache-2.0
// What a handler is given and what it returns, typed by the route it serves.

import type { BodyOf, ParamsOf, QueryOf, ReplyOf } from "../../protocol/route.ts";
import type { RouteName, RouteOf } from "../../protocol/routes.ts";
import type { NodeCaller, PeopleCaller } from "../access/credential.ts";

type CallerOf<Name extends RouteName> = RouteOf<Name>["access"]["kind"] extends "people"
  ? PeopleCaller
  : RouteOf<Name>["access"]["kind"] extends "node"
    ? NodeCaller
    : undefined;

export type Call<Name extends RouteName> = {
  readonly params: ParamsOf<RouteOf<Name>>;
  readonly query: QueryOf<RouteOf<Name>>;
  readonly body: BodyOf<RouteOf<Name>>;
  readonly caller: CallerOf<Name>;
  readonly idempotencyKey: string | undefined;
  readonly pairingCode: string | undefined;
  readonly userAgent: string | undefined;
  /** The address that the request came from. */
  readonly address: string;
  /** Aborts when the client has gone or the controller stops. */
  readonly signal: AbortSignal;
};

/** Marks an idempotent repeat: 200 instead of 201. */
export type Repeated<Reply> = { readonly repeated: Reply };

/** Sets the cookie of a browser that signed in; takes it away without a secret. */
export type BrowserCookie = { readonly secret: string | undefined; readonly lifeMs: number };
export type WithCookie<Reply> = { readonly reply: Reply; readonly cookie: BrowserCookie };

export type Answer<Name extends RouteName> =
  | ReplyOf<RouteOf<Name>>
  | Repeated<ReplyOf<RouteOf<Name>>>
  | WithCookie<ReplyOf<RouteOf<Name>>>
  /** Server-sent events, for a route that streams. */
  | AsyncGenerator<ReplyOf<RouteOf<Name>>, void, undefined>;

export type Handlers<Names extends RouteName = RouteName> = {
  readonly [Name in Names]: (call: Call<Name>) => Promise<Answer<Name>>;
};
