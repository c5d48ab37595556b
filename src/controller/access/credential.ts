// SPDX-License-Identifier: Apache-2.0
// Secrets: 256 random bits behind a prefix that says what they are; only their SHA-256 is stored. Such a secret needs no
// slow hash: nobody guesses 256 bits. Looking one up by its hash compares nothing secret byte by byte.

import { createHash } from "node:crypto";
import type { Scope } from "../../protocol/access-schema.ts";
import type { PeopleScope, UserRole } from "../../protocol/user.ts";
import type { CredentialId, NodeId, OrganisationId, UserId } from "../../std/ids.ts";
import type { Random } from "../../std/random.ts";

export type SecretKind = "token" | "node" | "pairing" | "browser" | "link";
const prefixes = { token: "hft_", node: "hfn_", pairing: "hfp_", browser: "hfb_", link: "hfl_" } as const;

export function drawSecret(kind: SecretKind, random: Random): string {
  return prefixes[kind] + Buffer.from(random.bytes(32)).toString("base64url");
}

export function hashSecret(secret: string): Buffer {
  return createHash("sha256").update(secret, "utf8").digest();
}

/** What a secret looks like; anything else is refused before the database is asked. */
export const SECRET_PATTERN = /^hf[tnpbl]_[A-Za-z0-9_-]{43}$/;

export type PeopleCaller = {
  readonly kind: "people";
  readonly organisationId: OrganisationId;
  readonly organisationName: string;
  readonly credentialId: CredentialId;
  readonly userId: UserId;
  readonly userName: string;
  readonly role: UserRole;
  readonly hasPassword: boolean;
  readonly credentialKind: "token" | "browser";
  readonly expiresAt: string | null;
  /** Of a browser only. */
  readonly csrfToken: string | null;
  readonly scopes: readonly PeopleScope[];
};

export type NodeCaller = {
  readonly kind: "node";
  readonly organisationId: OrganisationId;
  readonly organisationName: string;
  readonly credentialId: CredentialId;
  readonly nodeId: NodeId;
  readonly nodeName: string;
  readonly scopes: readonly Scope[];
};

export type Caller = PeopleCaller | NodeCaller;

/** How the ledger and the audit name a caller. */
export function actorOf(caller: Caller): string {
  return caller.kind === "node" ? caller.nodeId : caller.userId;
}
