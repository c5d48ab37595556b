// SPDX-License-Identifier: Apache-2.0
// What a launch runs and why: spec.json, kept for whoever finds the directory, and params, read and unlinked by the shim.
// Rule: the environment may hold secrets, so it is in params only (0600, gone before the job runs), never in spec.json or argv.

import type { Fault } from "../std/errors.ts";
import type { JobId } from "../std/ids.ts";
import { damaged, type Fields, parseFields } from "./fields.ts";

/** What the launch is for. With it the agent finds the way back from a directory to its job. The epoch is a 64-bit counter as text. */
export type Purpose = { readonly kind: "attempt"; readonly jobId: JobId; readonly epoch: string };

/** Each narrows what the agent itself has, and never widens it; absent leaves it. */
export type Limits = {
  readonly cpuSeconds?: number;
  readonly addressSpaceBytes?: number;
  readonly fileSizeBytes?: number;
  readonly openFiles?: number;
};

export type LaunchSpec = {
  readonly launchId: string;
  readonly purpose: Purpose;
  readonly argv: readonly string[];
  /** Absolute. */
  readonly workingDirectory: string;
  readonly limits: Limits;
  readonly createdAtMs: number;
};

export type Environment = { readonly [name: string]: string };
/** Whom the job runs as: the agent's own account. */
export type Account = { readonly name: string; readonly home: string };

const LIMIT_KEYS = ["cpuSeconds", "addressSpaceBytes", "fileSizeBytes", "openFiles"] as const;
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The same purpose gives the same id, so that the exclusive creation of its directory fences a second start. */
export function launchIdOf(purpose: Purpose): string {
  return `${purpose.kind}-${purpose.jobId}-${purpose.epoch}`;
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
  return `${JSON.stringify({ version: 1, ...spec })}\n`;
}

export function parseSpec(text: string, place: string): LaunchSpec {
  const fields = parseFields(text, place);
  return {
    launchId: fields.text("launchId"),
    purpose: purposeOf(fields.object("purpose"), place),
    argv: fields.texts("argv"),
    workingDirectory: fields.text("workingDirectory"),
    limits: limitsOf(fields.object("limits")),
    createdAtMs: fields.count("createdAtMs"),
  };
}

function purposeOf(fields: Fields, place: string): Purpose {
  const kind = fields.text("kind");
  if (kind !== "attempt") throw damaged(place, `names an unknown purpose "${kind}"`);
  return { kind, jobId: fields.text("jobId") as JobId, epoch: fields.counter("epoch") };
}

function limitsOf(fields: Fields): Limits {
  return Object.fromEntries(LIMIT_KEYS.filter((key) => fields.has(key)).map((key) => [key, fields.count(key)]));
}

/** The records that native/params.h reads: `key=value`, each ended by NUL. */
export function encodeParams(spec: LaunchSpec, environment: Environment): string {
  const records = [
    "version=1",
    `directory=${spec.workingDirectory}`,
    "account=-",
    ...LIMIT_KEYS.map((key) => `${key}=${spec.limits[key] ?? "-"}`),
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
  for (const key of LIMIT_KEYS) {
    const limit = spec.limits[key];
    check(
      `limits/${key}`,
      limit === undefined || (Number.isSafeInteger(limit) && limit > 0),
      "is not a whole number above 0",
    );
  }
  return faults;
}
