// SPDX-License-Identifier: Apache-2.0
// A real control group with a limit of memory, in whichever version this machine counts memory, and what the kernel's killer
// did in it. Only root may make one.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { parseCgroupMounts } from "../../src/launcher/cgroup.ts";
import { cleanupOf, type Ending } from "../kit/cleanup.ts";
import { until } from "../kit/until.ts";

export type MemoryGroup = {
  readonly directory: string;
  /** The file that has its limit. */
  readonly limitFile: string;
  /** How many processes the kernel killed in it for want of memory. */
  readonly kills: () => number;
};

export function createMemoryGroup(t: Ending, limitBytes: number): MemoryGroup {
  const { version2, memory1 } = parseCgroupMounts(fs.readFileSync("/proc/self/mountinfo", "utf8"));
  const isVersion1 = memory1.length > 0;
  const mount = (isVersion1 ? memory1 : version2)[0]?.mountPoint ?? assert.fail("this machine shows no control groups");
  if (!isVersion1) fs.writeFileSync(path.join(mount, "cgroup.subtree_control"), "+memory");
  const directory = fs.mkdtempSync(path.join(mount, "holdfast-test-"));
  const [limitFile, killsFile] = isVersion1
    ? ["memory.limit_in_bytes", "memory.oom_control"]
    : ["memory.max", "memory.events"];
  // Freed when the last process in it has ended.
  cleanupOf(t).defer(async () => {
    await until(`${directory} is empty`, () => isRemoved(directory));
  });
  fs.writeFileSync(path.join(directory, limitFile), String(limitBytes));
  return {
    directory,
    limitFile,
    kills: () => Number(/^oom_kill (\d+)$/m.exec(fs.readFileSync(path.join(directory, killsFile), "utf8"))?.[1]),
  };
}

function isRemoved(directory: string): boolean {
  try {
    fs.rmdirSync(directory);
    return true;
  } catch {
    return false;
  }
}
