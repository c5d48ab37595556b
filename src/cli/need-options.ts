// SPDX-License-Identifier: Apache-2.0
// The options by which a job or a registered model says what it needs of a machine, and how such needs are printed.

import type { Command } from "commander";
import { needFaults, type Needs, paths } from "../protocol/placement.ts";
import type { Fault } from "../std/errors.ts";
import { parseSize, parseWhole } from "./units.ts";

export type NeedOptions = {
  readonly memory?: number;
  readonly arch?: string;
  readonly gpuMemory?: number;
  readonly hostPart?: number;
  readonly cpuMemory?: number;
  readonly paths?: string;
  readonly gpus?: number;
};

export function addNeedOptions(command: Command): Command {
  return command
    .option("--memory <size>", "memory of the machine that it needs, such as 8GiB", parseSize)
    .option("--arch <arch>", "x64 or arm64")
    .option("--gpu-memory <size>", "memory that it needs beside a GPU when all of it runs there", parseSize)
    .option("--host-part <size>", "how much of that may lie in the machine's memory instead", parseSize)
    .option("--cpu-memory <size>", "memory that it needs on the processor alone (default: --gpu-memory)", parseSize)
    .option("--paths <paths>", "only these, of gpu,split,cpu (default: all that it describes)")
    .option("--gpus <n>", "GPUs over which it can spread (default: 1)", parseWhole(1, 64));
}

const OPTIONS: Readonly<Record<keyof Needs, string>> = {
  memoryBytes: "--memory",
  needFullBytes: "--gpu-memory",
  needHostBytes: "--host-part",
  needMinBytes: "--cpu-memory",
  paths: "--paths",
  gpus: "--gpus",
  arch: "--arch",
};

/** isPart: a registered model adds to these, so they need not be whole. */
export function needsOf(
  options: NeedOptions,
  isPart = false,
): { readonly needs: { -readonly [Key in keyof Needs]: MutableList<Needs[Key]> }; readonly faults: readonly Fault[] } {
  const { arch, paths: list } = options;
  const faults: Fault[] = [];
  const known = ["x64", "arm64"] as const;
  const knownArch = known.find((one) => one === arch);
  if (arch !== undefined && knownArch === undefined) faults.push({ place: "--arch", problem: "must be x64 or arm64" });
  const wanted = list?.split(",").map((text) => text.trim());
  const chosen = paths.filter((path) => wanted?.includes(path));
  if (wanted?.some((text) => !paths.some((path) => path === text)) === true)
    faults.push({ place: "--paths", problem: `is a list of ${paths.join(", ")}, such as gpu,split` });
  const needs = {
    ...defined("memoryBytes", options.memory),
    ...defined("arch", knownArch),
    ...defined("needFullBytes", options.gpuMemory),
    ...defined("needHostBytes", options.hostPart),
    ...defined("needMinBytes", options.cpuMemory),
    ...defined("paths", chosen.length === 0 ? undefined : chosen),
    ...defined("gpus", options.gpus),
  };
  if (!isPart)
    for (const { field, problem } of needFaults(needs))
      faults.push({ place: OPTIONS[field], problem: inOptions(problem) });
  return { needs, faults };
}

type MutableList<Value> = Value extends readonly (infer Item)[] ? Item[] : Value;

/** The sentence of the protocol with the names that were typed. */
function inOptions(problem: string): string {
  return Object.entries(OPTIONS).reduce(
    (text, [field, option]) => text.replaceAll(new RegExp(`\\b${field}\\b`, "g"), option),
    problem,
  );
}

export function defined<Key extends string, Value>(key: Key, value: Value | undefined): { [K in Key]?: Value } {
  return value === undefined ? {} : ({ [key]: value } as { [K in Key]: Value });
}
