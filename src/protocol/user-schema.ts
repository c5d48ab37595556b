// SPDX-License-Identifier: Apache-2.0
// What crosses HTTP about people and how they sign in. A secret travels in a body or a header, never in a URL that is sent.

import Type, { type Static } from "typebox";
import { exact, id, name, nullable, time } from "./common-schema.ts";
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN, userRoles } from "./user.ts";

const role = Type.Enum([...userRoles]);

export const user = exact({
  id: id("user"),
  name,
  role,
  hasPassword: Type.Boolean(),
  createdAt: time,
  disabledAt: nullable(time),
  /** When one of their credentials was last used. */
  lastSeenAt: nullable(time),
});
export type User = Static<typeof user>;

export const userCreation = exact({ name, role });
export const roleChange = exact({ role });

export const loginLinkRequest = exact({
  /** Whom it signs in; without it the caller. */
  userId: Type.Optional(id("user")),
});
export const loginLink = exact({
  userId: id("user"),
  userName: Type.String(),
  /** Append it to the controller's address. The secret stands behind the #, which browsers do not send. Shown once. */
  path: Type.String(),
  expiresAt: time,
});

export const signInByLink = exact({
  secret: Type.String({ pattern: "^hfl_[A-Za-z0-9_-]{43}$", description: "what stood behind the #" }),
});
export const signInByPassword = exact({
  name,
  password: Type.String({ minLength: 1, maxLength: PASSWORD_LENGTH_MAX }),
});

export const passwordChange = exact({
  /** Needed when there is one. */
  currentPassword: Type.Optional(Type.String({ minLength: 1, maxLength: PASSWORD_LENGTH_MAX })),
  newPassword: Type.String({ minLength: PASSWORD_LENGTH_MIN, maxLength: PASSWORD_LENGTH_MAX }),
});
