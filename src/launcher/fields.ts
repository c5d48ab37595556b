// SPDX-License-Identifier: Apache-2.0
// Reads the small JSON files of a launch directory. Rule: what does not have the expected shape is damage and says where; it
// is never read as a default. An unknown version is a newer Holdfast's and is refused by its own sentence.

import { Failure } from "../std/errors.ts";

export type Fields = {
  readonly has: (key: string) => boolean;
  readonly text: (key: string) => string;
  readonly count: (key: string) => number;
  /** A 64-bit counter as text; a whole number is read as one too. */
  readonly counter: (key: string) => string;
  readonly flag: (key: string) => boolean;
  readonly texts: (key: string) => readonly string[];
  readonly object: (key: string) => Fields;
};

export function damaged(place: string, problem: string): Failure {
  return new Failure("launch_damaged", `${place} ${problem}; look at it, then remove the launch directory`);
}

/** The fields of a JSON object text of at most this version; `place` is the path that faults name. */
export function parseFields(text: string, place: string, newest = 1): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Failure("launch_damaged", `${place} is not JSON; look at it, then remove the launch directory`, {
      cause,
    });
  }
  const fields = fieldsOf(value, place);
  const version = fields.count("version");
  if (version > newest) {
    throw new Failure("launch_newer", `${place} was written by a newer Holdfast (version ${version}): update this one`);
  }
  return fields;
}

function fieldsOf(value: unknown, place: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw damaged(place, "is not an object");
  const entries = new Map<string, unknown>(Object.entries(value));
  const read = <T>(key: string, expected: string, is: (value: unknown) => value is T): T => {
    const found = entries.get(key);
    if (!is(found)) throw damaged(place, `has no ${expected} in "${key}"`);
    return found;
  };
  return {
    has: (key) => entries.has(key),
    text: (key) => read(key, "text", isText),
    count: (key) => read(key, "whole number", isCount),
    counter: (key) => String(read(key, "counter", isCounter)),
    flag: (key) => read(key, "true or false", (found) => typeof found === "boolean"),
    texts: (key) => read(key, "list of texts", isTexts),
    object: (key) => fieldsOf(entries.get(key), `${place}: "${key}"`),
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isCounter(value: unknown): value is string | number {
  return isCount(value) || (typeof value === "string" && /^(0|[1-9]\d{0,18})$/.test(value));
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isText);
}
