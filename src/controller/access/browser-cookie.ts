// SPDX-License-Identifier: Apache-2.0
// The cookie of a browser that is signed in, and the token that proves that a change comes from our own page (CSRF).
// Rule: whatever a cookie lets in and changes something carries that token; there is no exception.

import { createHash, timingSafeEqual } from "node:crypto";
import { parseCookie, stringifySetCookie } from "cookie";

/** Cookies know no port: two controllers on one host must not sign each other out. */
function cookieName(host: string | undefined): string {
  const port = /:(\d{1,5})$/.exec(host ?? "")?.[1];
  return port === undefined ? "holdfast" : `holdfast_${port}`;
}

export type CookiePlace = {
  /** The request's Host header. */
  readonly host: string | undefined;
  readonly isHttps: boolean;
};

export function readCookie(header: string | undefined, host: string | undefined): string | undefined {
  return header === undefined ? undefined : parseCookie(header)[cookieName(host)];
}

/** undefined as secret takes the cookie away. */
export function writeCookie(secret: string | undefined, lifeMs: number, { host, isHttps }: CookiePlace): string {
  return stringifySetCookie({
    name: cookieName(host),
    value: secret ?? "",
    httpOnly: true,
    sameSite: "strict",
    path: "/",
    secure: isHttps,
    maxAge: secret === undefined ? 0 : Math.floor(lifeMs / 1000),
  });
}

/** Follows from the secret, so nothing more is stored; another site can read neither. */
export function csrfTokenOf(secret: string): string {
  return createHash("sha256").update(`holdfast-csrf-v1\n${secret}`).digest("base64url");
}

export function isCsrfToken(given: string | undefined, secret: string): boolean {
  const wanted = Buffer.from(csrfTokenOf(secret));
  const found = Buffer.from(given ?? "");
  return found.length === wanted.length && timingSafeEqual(found, wanted);
}
