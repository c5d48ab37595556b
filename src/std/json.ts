// SPDX-License-Identifier: Apache-2.0
// JSON that other places must agree on byte by byte: canonical text for fingerprints, and a check for what PostgreSQL cannot hold.

import type { Fault } from "./errors.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Keys sorted by code unit, no white space: equal values give equal text (the idea of RFC 8785). */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/**
 * JSON.parse that does not round: an integer beyond 2^53 becomes a bigint and a number beyond the range of a double stays
 * infinite, and `unstorable` then names the place. Throws SyntaxError like JSON.parse.
 */
export function parseJson(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { source?: string }) => {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    const source = context?.source;
    return source !== undefined && /^-?\d+$/.test(source) && source.length < 400 ? BigInt(source) : value;
  });
}

/** How deep a payload may nest. */
export const JSON_DEPTH_MAX = 32;

/** Every place in a parsed JSON value that PostgreSQL could not store or that would not come back the same. */
export function unstorable(value: unknown, place: string, depth = 0): readonly Fault[] {
  if (depth > JSON_DEPTH_MAX) return [{ place, problem: `nests deeper than ${JSON_DEPTH_MAX} levels` }];
  if (typeof value === "string") return textFaults(value, place);
  if (typeof value === "bigint") {
    return [{ place, problem: "is a number with more digits than JSON numbers keep: send it as a string" }];
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    return [{ place, problem: "is a number too large for JSON: send it as a string" }];
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => unstorable(item, `${place}/${index}`, depth + 1));
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([key, item]) => [
      ...textFaults(key, `${place}/${pointerPart(key.toWellFormed())} (the key)`),
      ...unstorable(item, `${place}/${pointerPart(key.toWellFormed())}`, depth + 1),
    ]);
  }
  return [];
}

function textFaults(text: string, place: string): readonly Fault[] {
  const faults: Fault[] = [];
  if (text.includes("\0")) faults.push({ place, problem: "contains a NUL character (U+0000), which cannot be stored" });
  if (!text.isWellFormed()) faults.push({ place, problem: "contains a lone surrogate: it is not valid Unicode" });
  return faults;
}

/** One part of a JSON pointer (RFC 6901). */
export function pointerPart(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Text from the outside (a log line, an error of a process) made storable: NUL and broken Unicode stay visible as escapes. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\\u0000");
}
