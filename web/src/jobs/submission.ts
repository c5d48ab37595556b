// SPDX-License-Identifier: Apache-2.0
// A submission made from what was typed into the form: only what was filled in is sent, so that the controller's defaults
// count. What the text alone cannot be is said here, at its field; every rule about jobs is the controller's.

import type { JobSubmission } from "../../../src/protocol/job-schema.ts";
import { messageOf } from "../../../src/std/errors.ts";
import { parseJson, unstorable } from "../../../src/std/json.ts";
import { durationMsOf, sizeOf } from "../../../src/std/units.ts";
import { archNeed } from "../parts/arch.ts";
import { splitCommand } from "./split-command.ts";

export type Draft = {
  readonly way: "line" | "arguments";
  readonly command: string;
  readonly environment: string;
  readonly workingDirectory: string;
  readonly memory: string;
  readonly arch: string;
  readonly nodeId: string;
  readonly model: string;
  readonly project: string;
  readonly priority: string;
  readonly notBefore: string;
  readonly timeLimit: string;
  readonly retries: string;
  readonly labels: string;
  readonly input: string;
};

export const emptyDraft: Draft = {
  way: "line",
  command: "",
  environment: "",
  workingDirectory: "",
  memory: "",
  arch: "",
  nodeId: "",
  model: "",
  project: "",
  priority: "",
  notBefore: "",
  timeLimit: "",
  retries: "",
  labels: "",
  input: "",
};

export type FieldFaults = Readonly<Partial<Record<keyof Draft, string>>>;
export type Drafted = { readonly faults: FieldFaults; readonly submission: JobSubmission };

/** One argument a line; an empty line is an empty argument, but not at the end. */
export function wordsOf(draft: Pick<Draft, "way" | "command">): readonly string[] {
  if (draft.way === "line") return splitCommand(draft.command).words;
  const text = draft.command.replace(/\n+$/, "");
  return text === "" ? [] : text.split("\n");
}

export function draftedSubmission(draft: Draft): Drafted {
  const faults: Partial<Record<keyof Draft, string>> = {};
  const read = <Value>(key: keyof Draft, reader: (text: string) => Value | string | undefined): Value | undefined => {
    const text = draft[key].trim();
    if (text === "") return undefined;
    const value = reader(text);
    if (typeof value !== "string") return value;
    faults[key] = value;
    return undefined;
  };
  if (draft.way === "line") {
    const { problem } = splitCommand(draft.command);
    if (problem !== undefined) faults.command = problem;
  }
  const retries = read("retries", wholeNumber);
  const priority = read("priority", wholeNumber);
  const timeLimitMs = read("timeLimit", (text) => durationMsOf(text) ?? "is a duration such as 90s, 10m or 2h");
  const environment = read("environment", pairs);
  const labels = read("labels", pairs);
  const input = read("input", jsonOf);
  const notBefore = read("notBefore", timeOf);
  const submission: JobSubmission = {
    command: [...wordsOf(draft)],
    ...(environment === undefined ? {} : { environment }),
    ...filled("workingDirectory", draft.workingDirectory),
    ...(input === undefined ? {} : { input: input.value }),
    ...requirementsOf(
      draft,
      read("memory", (text) => sizeOf(text) ?? "is a size such as 8GiB or 500MB"),
    ),
    ...(priority === undefined ? {} : { priority }),
    ...(notBefore === undefined ? {} : { notBefore: notBefore.at }),
    ...(timeLimitMs === undefined ? {} : { timeLimitMs }),
    ...(retries === undefined ? {} : { retry: { maxAttempts: retries + 1, onFailure: retries > 0 } }),
    ...(labels === undefined ? {} : { labels }),
    ...filled("project", draft.project),
  };
  return { faults, submission };
}

function requirementsOf(draft: Draft, memoryBytes: number | undefined): Pick<JobSubmission, "requires"> {
  const requires = {
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...archNeed(draft.arch),
    ...filled("nodeId", draft.nodeId),
    ...filled("model", draft.model),
  };
  return Object.keys(requires).length === 0 ? {} : { requires };
}

function filled<Key extends string>(key: Key, text: string): { readonly [K in Key]?: string } {
  return text.trim() === "" ? {} : ({ [key]: text.trim() } as { [K in Key]: string });
}

function wholeNumber(text: string): number | string {
  return /^-?\d{1,9}$/.test(text) ? Number(text) : "is a whole number";
}

/** NAME=VALUE, one a line. */
function pairs(text: string): Record<string, string> | string {
  const all: Record<string, string> = {};
  for (const line of text.split("\n").filter((each) => each.trim() !== "")) {
    const at = line.indexOf("=");
    if (at < 1) return `has a line that is not NAME=VALUE: ${line}`;
    all[line.slice(0, at).trim()] = line.slice(at + 1);
  }
  return all;
}

/** As the controller would refuse it: a number that loses digits on the way is nobody's input. */
function jsonOf(text: string): { readonly value: unknown } | string {
  try {
    const value = parseJson(text);
    const [fault] = unstorable(value, "");
    return fault === undefined ? { value } : `${fault.place === "" ? "it" : fault.place} ${fault.problem}`;
  } catch (error) {
    return `is not JSON: ${messageOf(error)}`;
  }
}

/** What <input type=datetime-local> gives, in the zone of this browser. */
function timeOf(text: string): { readonly at: string } | string {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? "is not a time" : { at: time.toISOString() };
}
