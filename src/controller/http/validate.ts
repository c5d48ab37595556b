// SPDX-License-Identifier: Apache-2.0
// Checks what came in against the route's schemas. All faults at once, each with its place; unknown fields are refused,
// nothing is coerced in a body; numbers that would lose digits are named instead of rounded.

import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import type { Fault } from "../../std/errors.ts";
import { pointerPart, unstorable } from "../../std/json.ts";

const FAULTS_MAX = 50;

const options = {
  allErrors: true,
  removeAdditional: false,
  useDefaults: false,
  strict: false,
  logger: false,
  ownProperties: true,
} as const;
const exactAjv = new Ajv({ ...options, coerceTypes: false });
/** A query is text: "50" may be a number there. */
const queryAjv = new Ajv({ ...options, coerceTypes: true });

export type Part = "params" | "query" | "body";
export type Validator = (value: unknown) => readonly Fault[];

/** Compiled once for each route at start. */
export function compile(part: Part, schema: object): Validator {
  const check: ValidateFunction = (part === "body" ? exactAjv : queryAjv).compile(schema);
  return (value) => {
    const storable = part === "body" ? unstorable(value, "") : unstorable(value, part);
    if (storable.length > 0) return storable.slice(0, FAULTS_MAX);
    if (check(value)) return [];
    return dedupe((check.errors ?? []).map((error) => faultOf(part, error))).slice(0, FAULTS_MAX);
  };
}

function faultOf(part: Part, error: ErrorObject): Fault {
  const base = part === "body" ? error.instancePath : `${part}${error.instancePath}`;
  if (error.keyword === "additionalProperties") {
    return {
      place: `${base}/${pointerPart(String(error.params["additionalProperty"]))}`,
      problem: "is not a field that is known here",
    };
  }
  if (error.keyword === "required")
    return { place: `${base}/${String(error.params["missingProperty"])}`, problem: "is missing" };
  if (error.keyword === "enum")
    return { place: base || "/", problem: `must be one of ${(error.params["allowedValues"] as unknown[]).join(", ")}` };
  return { place: base || "/", problem: error.message ?? "is not valid" };
}

function dedupe(faults: readonly Fault[]): readonly Fault[] {
  const seen = new Set<string>();
  return faults.filter((fault) => {
    const key = `${fault.place}\n${fault.problem}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/**
 * JSON.parse that does not round: an integer beyond 2^53 becomes a bigint and a number beyond the range of a double stays
 * infinite, and the check then names the place. Throws SyntaxError like JSON.parse.
 */
export function parseJson(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { source?: string }) => {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    const source = context?.source;
    return source !== undefined && /^-?\d+$/.test(source) && source.length < 400 ? BigInt(source) : value;
  });
}
