// SPDX-License-Identifier: Apache-2.0
// What a launch runs and why: spec.json, kept for whoever finds the directory, and params, read and unlinked by the shim.
// Rule: the environment may hold secrets, so it is in params only (0600, gone before the job runs), never in spec.json or argv.

import type { Fault } from "../std/errors.ts";
import type { Cgroup } from "./cgroup.ts";
import { damaged, type Fields, parseFields } from "./fields.ts";
import { LIMIT_KEYS, limitFaults, type Limits, limitsOf } from "./limits.ts";
import { type Purpose, purposeFaults, purposeOf } from "./purpose.ts";

/** Where both outputs go. files: the job writes them itself. pump: through the shim into files that rotate and never stall it. */
export type OutputMode =
  | { readonly mode: "files" }
  /** `files` of at most `fileBytes` for each stream: stdout, stdout.1, … */
  | { readonly mode: "pump"; readonly fileBytes: number; readonly files: number };

export type LaunchSpec = {
  readonly launchId: string;
  readonly purpose: Purpose;
  readonly argv: readonly string[];
  /** Absolute. */
  readonly workingDirectory: string;
  readonly limits: Limits;
  readonly createdAtMs: number;
  /** Absent: files. */
  readonly output?: OutputMode;
  /** The bytes that were signed, in base64: the directory attests what ran. Exactly for a signed job. */
  readonly signed?: string;
  /** Absent in launches of Holdfast 0.1, which had none. */
  readonly cgroup?: Cgroup;
};

export type Environment = { readonly [name: string]: string };
/** Whom the job runs as. */
export type Account = { readonly name: string; readonly home: string };

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const PUMP_FILES_MAX = 99;
/** Version 2 has purposes beyond an attempt; a spec that needs nothing of it is written as 1, so that an older Holdfast reads it. */
const NEWEST_SPEC = 2;

/** By this a process of the launch is known, wherever it went. */
export const MARK_VARIABLE = "HOLDFAST_LAUNCH";

export function markOf(spec: LaunchSpec): string {
  return `${markStart(spec.launchId)}${spec.createdAtMs}`;
}

/** Of every launch of this id. */
export function markStart(launchId: string): string {
  return `${launchId}/`;
}

/** Nothing is inherited from the agent: these, then what the caller gives. */
export function environmentOf(account: Account, given: Environment): Environment {
  return {
    PATH: DEFAULT_PATH,
    HOME: account.home,
    USER: account.name,
    LOGNAME: account.name,
    LANG: "C.UTF-8",
    ...given,
  };
}

export function encodeSpec(spec: LaunchSpec): string {
  const version = spec.purpose.kind === "attempt" ? 1 : NEWEST_SPEC;
  return `${JSON.stringify({ version, ...spec })}\n`;
}

export function parseSpec(text: string, place: string): LaunchSpec {
  const fields = parseFields(text, place, NEWEST_SPEC);
  return {
    launchId: fields.text("launchId"),
    purpose: purposeOf(fields.object("purpose"), place),
    argv: fields.texts("argv"),
    workingDirectory: fields.text("workingDirectory"),
    limits: limitsOf(fields.object("limits")),
    createdAtMs: fields.count("createdAtMs"),
    ...(fields.has("output") ? { output: outputOf(fields.object("output"), place) } : {}),
    ...(fields.has("signed") ? { signed: fields.text("signed") } : {}),
    ...(fields.has("cgroup") ? { cgroup: cgroupOf(fields.object("cgroup"), place) } : {}),
  };
}

function outputOf(fields: Fields, place: string): OutputMode {
  const mode = fields.text("mode");
  if (mode === "files") return { mode };
  if (mode === "pump") return { mode, fileBytes: fields.count("fileBytes"), files: fields.count("files") };
  throw damaged(place, `names an unknown output mode "${mode}"`);
}

function cgroupOf(fields: Fields, place: string): Cgroup {
  const kind = fields.text("kind");
  if (kind === "own") return { kind, path: fields.text("path") };
  if (kind === "none") return { kind, why: fields.text("why") };
  throw damaged(place, `names an unknown cgroup "${kind}"`);
}

/** Where the shim runs the job. */
export type Place = {
  /** The directory of one made for this launch; own: one below the shim's own. */
  readonly cgroup?: string | undefined;
  /** The one that the shim was started for; absent: its own. */
  readonly account?: string | undefined;
};

type Runnable = Pick<LaunchSpec, "argv" | "workingDirectory" | "limits" | "output">;

/** The records that native/params.h reads: `key=value`, each ended by NUL. */
export function encodeParams(spec: Runnable, environment: Environment, { cgroup, account }: Place = {}): string {
  const pump = spec.output?.mode === "pump" ? spec.output : undefined;
  // A pump is bounded by its rotation.
  const limits = pump === undefined ? spec.limits : { ...spec.limits, outputBytes: undefined };
  const records = [
    "version=1",
    `directory=${spec.workingDirectory}`,
    `account=${account ?? "-"}`,
    `cgroup=${cgroup ?? "-"}`,
    `output=${pump === undefined ? "files" : "pump"}`,
    `pumpFileBytes=${pump?.fileBytes ?? "-"}`,
    `pumpFiles=${pump?.files ?? "-"}`,
    ...LIMIT_KEYS.map((key) => `${key}=${limits[key] ?? "-"}`),
    ...spec.argv.map((argument) => `argument=${argument}`),
    ...Object.entries(environment).map(([name, value]) => `environment=${name}=${value}`),
  ];
  return records.map((record) => `${record}\0`).join("");
}

/** Everything that cannot be given to a process, all at once. */
export function specFaults(spec: LaunchSpec, environment: Environment): readonly Fault[] {
  const faults: Fault[] = [];
  const check = (place: string, isRight: boolean, problem: string): void => {
    if (!isRight) faults.push({ place, problem });
  };
  check("argv", spec.argv.length > 0 && spec.argv[0] !== "", "names no program");
  for (const [index, argument] of spec.argv.entries()) check(`argv/${index}`, !argument.includes("\0"), "contains NUL");
  const directory = spec.workingDirectory;
  check("workingDirectory", directory.startsWith("/") && !directory.includes("\0"), "is not an absolute path");
  for (const [name, value] of Object.entries(environment)) {
    check(`environment/${name}`, name !== "" && !/[=\0]/.test(name), "is not a name of a variable");
    check(`environment/${name}`, !value.includes("\0"), "contains NUL");
  }
  const isSigned = spec.purpose.kind === "signed";
  check("signed", isSigned === (spec.signed !== undefined), isSigned ? "is missing" : "belongs to a signed job only");
  return [...purposeFaults(spec.purpose), ...faults, ...outputFaults(spec.output), ...limitFaults(spec.limits)];
}

function outputFaults(output: OutputMode | undefined): readonly Fault[] {
  if (output?.mode !== "pump") return [];
  const { fileBytes, files } = output;
  const isRight = (count: number, most: number): boolean => Number.isSafeInteger(count) && count > 0 && count <= most;
  return [
    ...(isRight(fileBytes, Number.MAX_SAFE_INTEGER)
      ? []
      : [{ place: "output/fileBytes", problem: "is not a whole number above 0" }]),
    ...(isRight(files, PUMP_FILES_MAX) ? [] : [{ place: "output/files", problem: `is not 1 to ${PUMP_FILES_MAX}` }]),
  ];
}
