// SPDX-License-Identifier: Apache-2.0
// The people of an organisation, pure: which role gives which scopes, and what may be done to a user. A user is never
// deleted: the ledger and the audit refer to them.

export const peopleScopes = ["fleet:read", "fleet:write", "fleet:admin"] as const;
export type PeopleScope = (typeof peopleScopes)[number];

export const userRoles = ["admin", "member"] as const;
export type UserRole = (typeof userRoles)[number];

/** What a signed-in user may do. A credential of theirs never reaches further than this, whatever it was given before. */
export const roleScopes: Readonly<Record<UserRole, readonly PeopleScope[]>> = {
  admin: peopleScopes,
  member: ["fleet:read", "fleet:write"],
};

export type UserAction = "disable" | "enable" | "demote";

export type UserFacts = {
  readonly role: UserRole;
  readonly isDisabled: boolean;
  /** Admins of the organisation who are not disabled, this user included. */
  readonly activeAdmins: number;
};

/** Undefined when the action may be taken; else why not, in one sentence. */
export function whyNotUser(action: UserAction, user: UserFacts): string | undefined {
  if (action === "enable") return user.isDisabled ? undefined : "the user is not disabled";
  if (user.isDisabled) return "the user is disabled already";
  if (user.role === "admin" && user.activeAdmins <= 1) return "this is the last admin: make another user admin first";
  if (action === "demote" && user.role !== "admin") return "the user is no admin";
  return undefined;
}

/** NIST SP 800-63B: length is what counts; no rules of composition. */
export const PASSWORD_LENGTH_MIN = 10;
export const PASSWORD_LENGTH_MAX = 256;
