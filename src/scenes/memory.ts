// SPDX-License-Identifier: Apache-2.0
// How much memory this machine can still give: the kernel's MemAvailable, or less where a control group (of version 2 or 1, our
// own or any above it) allows less. Rules: page cache that can be dropped at once counts as available, in a group as on the
// machine; swap never does; unknown is said, never taken for zero.

import path from "node:path";
import { directoryIn, type Hierarchy, parseCgroupMounts, parseCgroupPath } from "../launcher/cgroup.ts";
import { readOrEmpty } from "../std/files.ts";

export type Available = {
  readonly bytes: number;
  /** Which bound it is, for people. */
  readonly source: string;
};

export type MemoryFiles = { readonly meminfo: string; readonly mountinfo: string; readonly cgroupOf: string };

export const SYSTEM_FILES: MemoryFiles = {
  meminfo: "/proc/meminfo",
  mountinfo: "/proc/self/mountinfo",
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

/** How a version of control groups names its files, and the lines of memory.stat. Source: the kernel's cgroup-v1/memory, cgroup-v2. */
type Version = {
  readonly limits: readonly string[];
  readonly usage: string;
  /** Of the whole subtree, in bytes. */
  readonly cache: readonly string[];
  /** Cache that must be written before it can be dropped. */
  readonly unwritten: readonly string[];
};

const VERSION_2: Version = {
  // Above high nothing is killed: all of it is slowed to a crawl.
  limits: ["memory.max", "memory.high"],
  usage: "memory.current",
  cache: ["active_file", "inactive_file", "slab_reclaimable"],
  unwritten: ["file_dirty", "file_writeback"],
};

const VERSION_1: Version = {
  limits: ["memory.limit_in_bytes"],
  usage: "memory.usage_in_bytes",
  cache: ["total_active_file", "total_inactive_file"],
  unwritten: ["total_dirty", "total_writeback"],
};

/** Version 1 says "no limit" as the largest number of pages. */
const NO_LIMIT_BYTES = 2 ** 60;

function cgroups({ mountinfo, cgroupOf }: MemoryFiles): readonly Available[] {
  const { version2, memory1 } = parseCgroupMounts(readOrEmpty(mountinfo));
  const own = readOrEmpty(cgroupOf);
  const own1 = /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(\/.*)$/m.exec(own)?.[1];
  return [
    ...levelsOf(version2, parseCgroupPath(own)).flatMap((directory) => boundsOf(directory, VERSION_2)),
    ...levelsOf(memory1, own1).flatMap((directory) => boundsOf(directory, VERSION_1)),
  ];
}

/** The directory of a group and of every one above it that a mount shows. */
function levelsOf(hierarchies: readonly Hierarchy[], group: string | undefined): readonly string[] {
  const levels = new Set<string>();
  for (const hierarchy of group === undefined ? [] : hierarchies) {
    const directory = directoryIn(hierarchy, group ?? "");
    if (directory === undefined) continue;
    const below = path.relative(hierarchy.mountPoint, directory).split("/");
    for (const depth of [...below.keys(), below.length])
      levels.add(path.join(hierarchy.mountPoint, ...below.slice(0, depth)));
  }
  return [...levels];
}

function boundsOf(directory: string, { limits, usage, cache, unwritten }: Version): readonly Available[] {
  const read = (name: string): number => {
    const text = readOrEmpty(path.join(directory, name)).trim();
    return /^\d+$/.test(text) ? Number(text) : Number.NaN;
  };
  const set = limits.map((name) => ({ name, bytes: read(name) })).filter(({ bytes }) => bytes < NO_LIMIT_BYTES);
  if (set.length === 0) return [];
  const used = read(usage);
  if (Number.isNaN(used)) return [];
  const stat = readOrEmpty(path.join(directory, "memory.stat"));
  const sum = (names: readonly string[]): number =>
    names.reduce((total, name) => total + Number(new RegExp(`^${name} (\\d+)$`, "m").exec(stat)?.[1] ?? 0), 0);
  const droppable = Math.max(0, sum(cache) - sum(unwritten));
  return set.map(({ name, bytes }) => ({
    bytes: Math.max(0, bytes - used + droppable),
    source: `${name} of ${directory}`,
  }));
}
