// SPDX-License-Identifier: Apache-2.0
// Sizes and durations as people type them.

import { InvalidArgumentError } from "commander";
import { ID_PATTERN } from "../std/id-pattern.ts";
import { durationMsOf, sizeOf } from "../std/units.ts";

/** 8GiB, 500MB, 1024: bytes. */
export function parseSize(text: string): number {
  const bytes = sizeOf(text);
  if (bytes === undefined) throw new InvalidArgumentError("It is a size such as 8GiB or 500MB.");
  return bytes;
}

/** 90s, 10m, 2h, 1d, 500ms: milliseconds. */
export function parseDuration(text: string): number {
  const ms = durationMsOf(text);
  if (ms === undefined) throw new InvalidArgumentError("It is a duration such as 90s, 10m or 2h.");
  return ms;
}

export function parseWhole(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^-?\d+$/.test(text) || value < minimum || value > maximum)
      throw new InvalidArgumentError(`It is a whole number from ${minimum} to ${maximum}.`);
    return value;
  };
}

/** An id of this kind, judged here so that a mistyped one is not answered with a pattern. */
export function parseId(prefix: string, what: string): (text: string) => string {
  const pattern = new RegExp(`^${prefix}_${ID_PATTERN}$`);
  return (text) => {
    if (!pattern.test(text)) throw new InvalidArgumentError(`It is the id of a ${what}, ${prefix}_ and 26 characters.`);
    return text;
  };
}

/** Collects the values of an option that may be repeated. */
export function parseEach(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

/** Collects NAME=VALUE options that may be repeated. */
export function parsePair(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It is NAME=VALUE.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

const TIME = /^(\d{4})-(\d\d)-(\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** RFC 3339, or a date alone for its first moment in UTC. Date itself takes "foo 5" and the 31st of February. */
export function parseTime(text: string): string {
  const [, year, month, day] = TIME.exec(text)?.map(Number) ?? [];
  const isDay = new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day)).getUTCDate() === day;
  const time = new Date(text);
  if (!isDay || Number.isNaN(time.getTime()))
    throw new InvalidArgumentError("It is a time with its zone, such as 2026-12-01T08:00:00Z.");
  return time.toISOString();
}
