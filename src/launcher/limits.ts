// SPDX-License-Identifier: Apache-2.0
// What a launch may use at most. Rule: a request narrows a ceiling of the launcher and never widens it; the kernel's own limits
// of the agent are narrowed the same way by the shim.

import type { Fault } from "../std/errors.ts";
import type { Fields } from "./fields.ts";

export type Limits = {
  /** Of each process of the job. */
  readonly cpuSeconds?: number;
  /** Of each process of the job. Passing it shows as the program's own failure only. */
  readonly addressSpaceBytes?: number;
  /** Of each file that the job writes. */
  readonly fileSizeBytes?: number;
  readonly openFiles?: number;
  /** Of each of both outputs, when they are files; what is beyond is cut. */
  readonly outputBytes?: number;
  /** From the start of the command: then SIGTERM, and SIGKILL five seconds later. */
  readonly wallTimeMs?: number;
};

/** The limit that ended a job, as native/shim.c names it in the exit file. */
export type BreachedLimit = "cpu-seconds" | "file-size" | "output" | "wall-time";

export const LIMIT_KEYS = [
  "cpuSeconds",
  "addressSpaceBytes",
  "fileSizeBytes",
  "openFiles",
  "outputBytes",
  "wallTimeMs",
] as const;

/** Where nobody says otherwise: no job may fill the disk with its output. */
export const DEFAULT_CEILINGS: Limits = { outputBytes: 1024 * 1024 * 1024 };

const BREACH_TEXT: { readonly [limit in BreachedLimit]: string } = {
  "cpu-seconds": "CPU time",
  "file-size": "file size",
  output: "output",
  "wall-time": "time",
};

export function describeBreach(limit: BreachedLimit): string {
  return BREACH_TEXT[limit];
}

export function isBreachedLimit(text: string): text is BreachedLimit {
  return Object.hasOwn(BREACH_TEXT, text);
}

/** The smaller of both for each limit. */
export function narrowLimits(ceilings: Limits, wanted: Limits): Limits {
  return Object.fromEntries(
    LIMIT_KEYS.flatMap((key) => {
      const given = [ceilings[key], wanted[key]].filter((limit) => limit !== undefined);
      return given.length === 0 ? [] : [[key, Math.min(...given)]];
    }),
  );
}

export function limitFaults(limits: Limits): readonly Fault[] {
  return LIMIT_KEYS.flatMap((key) => {
    const limit = limits[key];
    if (limit === undefined || (Number.isSafeInteger(limit) && limit > 0)) return [];
    return [{ place: `limits/${key}`, problem: "is not a whole number above 0" }];
  });
}

export function limitsOf(fields: Fields): Limits {
  return Object.fromEntries(LIMIT_KEYS.filter((key) => fields.has(key)).map((key) => [key, fields.count(key)]));
}
