// SPDX-License-Identifier: Apache-2.0
// The ending of a launch, as the shim writes it into the exit file. Rule: where an exit file is, nothing of the job runs any
// more (the shim saw that it has no child left). Written by native/shim.c.

import { constants } from "node:os";
import { getSystemErrorName } from "node:util";
import { damaged, type Fields, parseFields } from "./fields.ts";
import { type BreachedLimit, describeBreach, isBreachedLimit } from "./limits.ts";

type Written = {
  readonly endedAtMs: number;
  /** Of the whole stream, also where rotation or a full disk left less of it. */
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** Hexadecimal, over all those bytes; absent in exit files of Holdfast 0.1. */
  readonly stdoutSha256?: string;
  readonly stderrSha256?: string;
  /** What a pump could not write. */
  readonly stdoutDroppedBytes?: number;
  readonly stderrDroppedBytes?: number;
  /** The shim was asked to stop (SIGTERM), or to kill (SIGUSR1), before the end. */
  readonly stopAsked: boolean;
  readonly killAsked: boolean;
};

type Ran = Written & {
  readonly startedAtMs: number;
  /** Processes that outlived the job's leader and were ended by the shim. */
  readonly descendants: number;
  /** The limit that it passed, where that can be seen. */
  readonly limit?: BreachedLimit;
};

/** Where it failed before the program began: a limit, the account, the working directory, the program itself. */
export type ExecStage = "fork" | "start" | "limits" | "account" | "directory" | "exec";

export type Exit =
  | ({ readonly kind: "exited"; readonly code: number } & Ran)
  | ({ readonly kind: "signalled"; readonly signal: number } & Ran)
  | ({ readonly kind: "exec-failed"; readonly stage: ExecStage; readonly errno: number } & Ran)
  | ({ readonly kind: "not-started" } & Written);

/** Gone without an exit file: the shim was killed, or the machine went down. What became of the job is not known. */
export type Lost = { readonly kind: "lost" };
export type Ending = Exit | Lost;

export function parseExit(text: string, place: string): Exit {
  const fields = parseFields(text, place);
  const kind = fields.text("kind");
  if (kind === "not-started") return { kind, ...writtenOf(fields, place) };
  if (kind === "exited") return { kind, code: fields.count("code"), ...ranOf(fields, place) };
  if (kind === "signalled") return { kind, signal: fields.count("signal"), ...ranOf(fields, place) };
  if (kind === "exec-failed") {
    const stage = fields.text("stage");
    if (!isStage(stage)) throw damaged(place, `names an unknown stage "${stage}"`);
    return { kind, stage, errno: fields.count("errno"), ...ranOf(fields, place) };
  }
  throw damaged(place, `names an unknown kind "${kind}"`);
}

function writtenOf(fields: Fields, place: string): Written {
  return {
    endedAtMs: fields.count("endedAtMs"),
    stdoutBytes: fields.count("stdoutBytes"),
    stderrBytes: fields.count("stderrBytes"),
    ...optional(fields, "stdoutSha256", (key) => hashOf(fields, key, place)),
    ...optional(fields, "stderrSha256", (key) => hashOf(fields, key, place)),
    ...optional(fields, "stdoutDroppedBytes", fields.count),
    ...optional(fields, "stderrDroppedBytes", fields.count),
    stopAsked: fields.flag("stopAsked"),
    killAsked: fields.flag("killAsked"),
  };
}

function ranOf(fields: Fields, place: string): Ran {
  return {
    ...writtenOf(fields, place),
    startedAtMs: fields.count("startedAtMs"),
    descendants: fields.count("descendants"),
    ...optional(fields, "limit", (key) => limitOf(fields, key, place)),
  };
}

function optional<K extends string, T>(fields: Fields, key: K, read: (key: K) => T): { readonly [key in K]?: T } {
  return fields.has(key) ? ({ [key]: read(key) } as { readonly [key in K]?: T }) : {};
}

function hashOf(fields: Fields, key: string, place: string): string {
  const hash = fields.text(key);
  if (!/^[0-9a-f]{64}$/.test(hash)) throw damaged(place, `has no SHA-256 in "${key}"`);
  return hash;
}

function limitOf(fields: Fields, key: string, place: string): BreachedLimit {
  const limit = fields.text(key);
  if (!isBreachedLimit(limit)) throw damaged(place, `names an unknown limit "${limit}"`);
  return limit;
}

function isStage(text: string): text is ExecStage {
  return Object.hasOwn(STAGE_TEXT, text);
}

const STAGE_TEXT: { readonly [stage in ExecStage]: string } = {
  fork: "no process could be made for it",
  start: "its files could not be connected",
  limits: "its limits could not be set",
  account: "the account for jobs could not be taken on",
  directory: "its working directory could not be entered",
  exec: "the program could not be executed",
};

/** One sentence for people, without a full stop: "exited with code 3", "was ended by SIGKILL". */
export function describeEnding(ending: Ending): string {
  switch (ending.kind) {
    case "exited":
      return `${breachOf(ending)}exited with code ${ending.code}`;
    case "signalled":
      return `${breachOf(ending)}was ended by ${signalName(ending.signal)}`;
    case "exec-failed":
      return `never ran: ${STAGE_TEXT[ending.stage]} (${getSystemErrorName(-ending.errno)})`;
    case "not-started":
      return "was never started";
    case "lost":
      return "ended with nobody to see how";
    default:
      return ending satisfies never;
  }
}

function breachOf({ limit }: Ran): string {
  return limit === undefined ? "" : `passed its limit of ${describeBreach(limit)} and `;
}

export function signalName(signal: number): string {
  const found = Object.entries(constants.signals).find(([, number]) => number === signal);
  return found?.[0] ?? `signal ${signal}`;
}
