// SPDX-License-Identifier: Apache-2.0
// What crosses HTTP about who may do what: scopes, tokens, audit, and the overview for people.

import Type, { type Static } from "typebox";
import { exact, id, name, nullable, time } from "./common-schema.ts";
import { jobStates } from "./job.ts";
import { LOG_ATTEMPT_BYTES_MAX } from "./limits.ts";

export const peopleScopes = ["fleet:read", "fleet:write", "fleet:admin"] as const;
export const nodeScopes = ["node:heartbeat", "node:claim", "node:report"] as const;
export type PeopleScope = (typeof peopleScopes)[number];
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
  actor: Type.String(),
  action: Type.String(),
  subject: Type.String(),
  data: Type.Record(Type.String(), Type.Unknown()),
});
export type AuditEntry = Static<typeof auditEntry>;

export const who = exact({
  organisationId: id("org"),
  organisationName: Type.String(),
  userId: nullable(id("user")),
  credentialId: id("cred"),
  scopes: Type.Array(Type.String()),
});

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
  /** What a person should look at, worst first; empty when all is well. */
  attention: Type.Array(Type.String()),
});
export type Overview = Static<typeof overview>;

/** Told to people whose log was cut. */
export const LOG_CUT_NOTE = `output beyond ${LOG_ATTEMPT_BYTES_MAX / 2 ** 20} MiB was not kept`;
