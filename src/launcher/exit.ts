// SPDX-License-Identifier: Apache-2.0
// The ending of a launch, as the shim writes it into the exit file. Rule: where an exit file is, nothing of the job runs any
// more (the shim saw that it has no child left). Written by native/shim.c.

import { constants } from "node:os";
import { getSystemErrorName } from "node:util";
import { damaged, type Fields, parseFields } from "./fields.ts";

type Written = {
  readonly endedAtMs: number;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
  /** The shim was asked to stop (SIGTERM), or to kill (SIGUSR1), before the end. */
  readonly stopAsked: boolean;
  readonly killAsked: boolean;
};

type Ran = Written & {
  readonly startedAtMs: number;
  /** Processes that outlived the job's leader and were ended by the shim. */
  readonly descendants: number;
};

/** Where it failed before the program began: the working directory, a limit, the program itself. */
export type ExecStage = "fork" | "start" | "limits" | "directory" | "exec";

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
  if (kind === "not-started") return { kind, ...writtenOf(fields) };
  if (kind === "exited") return { kind, code: fields.count("code"), ...ranOf(fields) };
  if (kind === "signalled") return { kind, signal: fields.count("signal"), ...ranOf(fields) };
  if (kind === "exec-failed") {
    const stage = fields.text("stage");
    if (!isStage(stage)) throw damaged(place, `names an unknown stage "${stage}"`);
    return { kind, stage, errno: fields.count("errno"), ...ranOf(fields) };
  }
  throw damaged(place, `names an unknown kind "${kind}"`);
}

function writtenOf(fields: Fields): Written {
  return {
    endedAtMs: fields.count("endedAtMs"),
    stdoutBytes: fields.count("stdoutBytes"),
    stderrBytes: fields.count("stderrBytes"),
    stopAsked: fields.flag("stopAsked"),
    killAsked: fields.flag("killAsked"),
  };
}

function ranOf(fields: Fields): Ran {
  return { ...writtenOf(fields), startedAtMs: fields.count("startedAtMs"), descendants: fields.count("descendants") };
}

function isStage(text: string): text is ExecStage {
  return ["fork", "start", "limits", "directory", "exec"].includes(text);
}

const STAGE_TEXT: { readonly [stage in ExecStage]: string } = {
  fork: "no process could be made for it",
  start: "its files could not be connected",
  limits: "its limits could not be set",
  directory: "its working directory could not be entered",
  exec: "the program could not be executed",
};

/** One sentence for people, without a full stop: "exited with code 3", "was ended by SIGKILL". */
export function describeEnding(ending: Ending): string {
  switch (ending.kind) {
    case "exited":
      return `exited with code ${ending.code}`;
    case "signalled":
      return `was ended by ${signalName(ending.signal)}`;
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

export function signalName(signal: number): string {
  const found = Object.entries(constants.signals).find(([, number]) => number === signal);
  return found?.[0] ?? `signal ${signal}`;
}
