// SPDX-License-Identifier: Apache-2.0
// What the processes of a model use, and whether they go on: memory that is theirs alone, CPU ticks, bytes read. Source: proc(5).
// Rule: memory hidden in swap counts as much as memory in RAM.

import { readOrEmpty } from "../std/files.ts";

export type MemoryUse = {
  /** Bytes. */
  readonly anonymous: number;
  readonly swapped: number;
};

export function memoryOf(tree: readonly number[]): MemoryUse {
  let anonymous = 0;
  let swapped = 0;
  for (const pid of tree) {
    const status = readOrEmpty(`/proc/${pid}/status`);
    anonymous += kibibytes(status, "RssAnon");
    swapped += kibibytes(status, "VmSwap");
  }
  return { anonymous, swapped };
}

function kibibytes(status: string, key: string): number {
  return Number(new RegExp(`^${key}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? 0) * 1024;
}

export type Work = { readonly cpuMs: number; readonly readBytes: number };

const TICK_MS = 10;

/** All that these processes did since their starts. */
export function workOf(tree: readonly number[]): Work {
  let cpuMs = 0;
  let readBytes = 0;
  for (const pid of tree) {
    const stat = readOrEmpty(`/proc/${pid}/stat`);
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    cpuMs += (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_MS;
    const io = readOrEmpty(`/proc/${pid}/io`);
    // By read calls, and by page faults of what is mapped.
    for (const key of ["rchar", "read_bytes"])
      readBytes += Number(new RegExp(`^${key}: (\\d+)$`, "m").exec(io)?.[1] ?? 0);
  }
  return { cpuMs, readBytes };
}

const CPU_SHARE = 0.1;
const READ_STEP_BYTES = 256 * 1024;

/** Whether a process that loads went on between two looks. Answering our own questions costs it a little, and is no progress. */
export function wentOn(before: Work, now: Work, elapsedMs: number): boolean {
  return now.cpuMs - before.cpuMs > elapsedMs * CPU_SHARE || now.readBytes - before.readBytes >= READ_STEP_BYTES;
}

/** Who uses the most memory of this machine, for people. */
export function largestUsers(
  pids: readonly number[],
  count: number,
): readonly { readonly pid: number; readonly bytes: number }[] {
  return pids
    .map((pid) => {
      const { anonymous, swapped } = memoryOf([pid]);
      return { pid, bytes: anonymous + swapped };
    })
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, count);
}
