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
exactAjv.addFormat("date-time", isTime);
/** A query is text: "50" may be a number there. */
const queryAjv = new Ajv({ ...options, coerceTypes: true });
queryAjv.addFormat("date-time", isTime);

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

/** RFC 3339, and a moment that exists: PostgreSQL takes no 30th of February, no year 0 and no offset beyond 15:59. */
function isTime(text: string): boolean {
  const match = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|[+-](\d\d):(\d\d))$/.exec(text);
  if (match === null) return false;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, offsetHour = 0, offsetMinute = 0] = match
    .slice(1)
    .map((part) => Number(part ?? 0));
  const daysInMonth = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
  const isDate = year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth;
  return isDate && hour <= 23 && minute <= 59 && second <= 59 && offsetHour <= 15 && offsetMinute <= 59;
}
