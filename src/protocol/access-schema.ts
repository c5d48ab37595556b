// SPDX-License-Identifier: Apache-2.0
// What crosses HTTP about who may do what: scopes, tokens, audit, and the overview for people.

import Type, { type Static } from "typebox";
import { exact, id, name, nullable, time } from "./common-schema.ts";
import { jobStates } from "./job.ts";
import { LOG_ATTEMPT_BYTES_MAX } from "./limits.ts";
import { type PeopleScope, peopleScopes, userRoles } from "./user.ts";

export const nodeScopes = ["node:heartbeat", "node:claim", "node:report"] as const;
export type NodeScope = (typeof nodeScopes)[number];
export type Scope = PeopleScope | NodeScope;

export const token = exact({
  id: id("cred"),
  name,
  scopes: Type.Array(Type.Enum([...peopleScopes])),
  createdAt: time,
  expiresAt: nullable(time),
  lastUsedAt: nullable(time),
  revokedAt: nullable(time),
});
export type Token = Static<typeof token>;

export const tokenCreation = exact({
  name,
  scopes: Type.Array(Type.Enum([...peopleScopes]), { minItems: 1, maxItems: 3, uniqueItems: true }),
  expiresInDays: Type.Optional(Type.Integer({ minimum: 1, maximum: 3650 })),
});
export const createdToken = exact({ ...token.properties, secret: Type.String({ description: "shown once" }) });

export const auditEntry = exact({
  id: id("aud"),
  at: time,
  actor: Type.String({ description: "user_…, node_…, pair_… or controller" }),
  /** The actor's present name, where it has one. */
  actorName: nullable(Type.String()),
  action: Type.String(),
  subject: Type.String(),
  subjectName: nullable(Type.String()),
  data: Type.Record(Type.String(), Type.Unknown()),
});
export type AuditEntry = Static<typeof auditEntry>;

export const credentialKinds = ["token", "browser", "node"] as const;

/** Who can present what: tokens, browsers that are signed in, nodes. Never the secret. */
export const credential = exact({
  id: id("cred"),
  kind: Type.Enum([...credentialKinds]),
  name: Type.String(),
  /** Of a token or a browser. */
  userId: nullable(id("user")),
  userName: nullable(Type.String()),
  /** Of a node. */
  nodeId: nullable(id("node")),
  nodeName: nullable(Type.String()),
  scopes: Type.Array(Type.String()),
  createdAt: time,
  expiresAt: nullable(time),
  lastUsedAt: nullable(time),
  revokedAt: nullable(time),
});
export type Credential = Static<typeof credential>;

export const who = exact({
  organisationId: id("org"),
  organisationName: Type.String(),
  userId: id("user"),
  userName: Type.String(),
  role: Type.Enum([...userRoles]),
  hasPassword: Type.Boolean(),
  credentialId: id("cred"),
  credentialKind: Type.Enum(["token", "browser"]),
  scopes: Type.Array(Type.Enum([...peopleScopes])),
  expiresAt: nullable(time),
  /** For a browser: send it as the header holdfast-csrf with everything that changes something. */
  csrfToken: nullable(Type.String()),
});
export type Who = Static<typeof who>;

/** Something that a person should look at. */
export const attention = exact({
  level: Type.Enum(["error", "warning"]),
  text: Type.String(),
  /** What to do, in one sentence. */
  advice: Type.String(),
  nodeId: nullable(id("node")),
  /** A state of jobs to look at. */
  jobState: nullable(Type.Enum([...jobStates])),
});
export type Attention = Static<typeof attention>;

export const overview = exact({
  version: Type.String(),
  organisationName: Type.String(),
  nodes: exact({ online: Type.Integer(), offline: Type.Integer(), draining: Type.Integer() }),
  jobs: exact(
    Object.fromEntries(jobStates.map((state) => [state, Type.Integer()])) as Record<
      (typeof jobStates)[number],
      Type.TInteger
    >,
  ),
  /** Queued jobs that no node can run. */
  blockedJobs: Type.Integer(),
  /** Slots of nodes that are online and active, and how many of them hold a lease. */
  slots: exact({ all: Type.Integer(), busy: Type.Integer() }),
  /** Worst first; empty when all is well. */
  attention: Type.Array(attention),
});
export type Overview = Static<typeof overview>;

/** Jobs that ended, minute by minute, the oldest first; without a gap. */
export const throughput = exact({
  minutes: Type.Array(
    exact({ at: time, succeeded: Type.Integer(), failed: Type.Integer(), cancelled: Type.Integer() }),
  ),
});
export type Throughput = Static<typeof throughput>;

/** One finding of doctor. */
export const check = exact({
  name: Type.String(),
  state: Type.Enum(["ok", "warning", "fault"]),
  text: Type.String(),
  /** What to do; empty when all is well. */
  advice: Type.String(),
});
export type Check = Static<typeof check>;

/** Told to people whose log was cut. */
export const LOG_CUT_NOTE = `output beyond ${LOG_ATTEMPT_BYTES_MAX / 2 ** 20} MiB was not kept`;
