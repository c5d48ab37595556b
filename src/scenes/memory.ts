// SPDX-License-Identifier: Apache-2.0
// How much memory this machine can still give: the kernel's MemAvailable, or less where a control group allows less. Rules:
// page cache that can be dropped counts as available; swap never does; unknown is said, never taken for zero.

import { readOrEmpty } from "../std/files.ts";
import path from "node:path";

export type Available = {
  readonly bytes: number;
  /** Which bound it is, for people. */
  readonly source: string;
};

export type MemoryFiles = { readonly meminfo: string; readonly cgroupMounts: string; readonly cgroupOf: string };

export const SYSTEM_FILES: MemoryFiles = {
  meminfo: "/proc/meminfo",
  cgroupMounts: "/sys/fs/cgroup",
  cgroupOf: "/proc/self/cgroup",
};

/** Undefined when nothing tells. */
export function availableMemory(files: MemoryFiles = SYSTEM_FILES): Available | undefined {
  const bounds = [machine(files.meminfo), ...cgroups(files)].filter((bound) => bound !== undefined);
  return bounds.toSorted((a, b) => a.bytes - b.bytes)[0];
}

function machine(file: string): Available | undefined {
  const kibibytes = /^MemAvailable:\s+(\d+) kB$/m.exec(readOrEmpty(file))?.[1];
  return kibibytes === undefined ? undefined : { bytes: Number(kibibytes) * 1024, source: "MemAvailable" };
}

/** Every level up to the root may have a limit. */
function cgroups({ cgroupMounts, cgroupOf }: MemoryFiles): readonly (Available | undefined)[] {
  const own = /^0::(\/.*)$/m.exec(readOrEmpty(cgroupOf))?.[1];
  if (own === undefined) return [];
  const levels = own.split("/").filter((part) => part !== "" && part !== "..");
  return [...levels.keys(), levels.length].map((depth) => {
    const directory = path.join(cgroupMounts, ...levels.slice(0, depth));
    const max = readOrEmpty(path.join(directory, "memory.max")).trim();
    const current = readOrEmpty(path.join(directory, "memory.current")).trim();
    if (!/^\d+$/.test(max) || !/^\d+$/.test(current)) return undefined;
    const cache = Number(/^inactive_file (\d+)$/m.exec(readOrEmpty(path.join(directory, "memory.stat")))?.[1] ?? 0);
    const bytes = Math.max(0, Number(max) - Number(current) + cache);
    return { bytes, source: `memory.max of ${directory}` };
  });
}
