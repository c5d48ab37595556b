// SPDX-License-Identifier: Apache-2.0
// One control group for each launch, below the agent's own, where that was delegated to this account. Rule: it is found through
// mountinfo, wherever it is mounted; without one a launch goes on without, and its spec.json says why.

import fs from "node:fs";
import path from "node:path";
import { codeOf, Failure } from "../std/errors.ts";

export type Cgroup =
  /** Its path as /proc/PID/cgroup shows it, in the hierarchy of version 2. */
  { readonly kind: "own"; readonly path: string } | { readonly kind: "none"; readonly why: string };

export type Hierarchy = { readonly mountPoint: string; readonly root: string };

/** Where a mountinfo text shows the hierarchy of version 2, and what it shows of version 1. Source: proc(5), cgroups(7). */
export function parseCgroupMounts(mountinfo: string): {
  readonly version2: readonly Hierarchy[];
  /** The hierarchies of version 1 that count memory. */
  readonly memory1: readonly Hierarchy[];
  readonly hasVersion1: boolean;
} {
  const version2: Hierarchy[] = [];
  const memory1: Hierarchy[] = [];
  let hasVersion1 = false;
  for (const line of mountinfo.split("\n")) {
    const [before = "", after = ""] = line.split(" - ", 2);
    const [, , , root = "", mountPoint = ""] = before.split(" ");
    const hierarchy = { mountPoint: unescaped(mountPoint), root: unescaped(root) };
    if (after.startsWith("cgroup2 ")) version2.push(hierarchy);
    if (!after.startsWith("cgroup ")) continue;
    hasVersion1 = true;
    if (/[ ,]memory(,|$)/.test(after)) memory1.push(hierarchy);
  }
  return { version2, memory1, hasVersion1 };
}

/** The path of version 2 in the text of /proc/PID/cgroup. */
export function parseCgroupPath(text: string): string | undefined {
  return /^0::(\/.*)$/m.exec(text)?.[1];
}

function unescaped(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCodePoint(Number.parseInt(octal, 8)));
}

/** Where a cgroup lies in the file system, by preference where it may be written; undefined when no mount shows it. */
export function cgroupDirectory(cgroupPath: string): string | undefined {
  const { version2 } = parseCgroupMounts(fs.readFileSync("/proc/self/mountinfo", "utf8"));
  const directories = version2.flatMap((hierarchy) => directoryIn(hierarchy, cgroupPath) ?? []);
  return directories.find(isWritable) ?? directories.find((directory) => fs.existsSync(directory)) ?? directories[0];
}

/** A cgroup above the mount's root, or outside our cgroup namespace, is not shown. */
export function directoryIn({ root, mountPoint }: Hierarchy, cgroupPath: string): string | undefined {
  if (cgroupPath.split("/").includes("..")) return undefined;
  if (root === "/") return path.join(mountPoint, cgroupPath);
  const isBelow = cgroupPath === root || cgroupPath.startsWith(`${root}/`);
  return isBelow ? path.join(mountPoint, cgroupPath.slice(root.length)) : undefined;
}

function isWritable(directory: string): boolean {
  try {
    fs.accessSync(directory, fs.constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const NAMES_MAX = 8;

/** Makes one for this launch. Whether a job really gets into it the shim tries, and says in its identity. */
export function createCgroup(launchId: string): Cgroup {
  try {
    const own = parseCgroupPath(fs.readFileSync("/proc/self/cgroup", "utf8"));
    const directory = own === undefined ? undefined : cgroupDirectory(own);
    if (own === undefined || directory === undefined) return { kind: "none", why: whyNoHierarchy() };
    fs.accessSync(path.join(directory, "cgroup.procs"), fs.constants.W_OK);
    // The same name may be another agent's, of another root: that one is never shared.
    for (let number = 1; number <= NAMES_MAX; number++) {
      const name = `holdfast-${launchId}${number === 1 ? "" : `.${number}`}`;
      if (madeDirectory(path.join(directory, name))) return { kind: "own", path: path.posix.join(own, name) };
    }
    return { kind: "none", why: `${directory} holds ${NAMES_MAX} cgroups of this name` };
  } catch (error) {
    const code = codeOf(error);
    if (code === "EACCES" || code === "EPERM" || code === "EROFS")
      return { kind: "none", why: "the agent's own cgroup is not delegated to its account" };
    return { kind: "none", why: `a cgroup could not be made: ${code}` };
  }
}

function whyNoHierarchy(): string {
  const { hasVersion1 } = parseCgroupMounts(fs.readFileSync("/proc/self/mountinfo", "utf8"));
  return hasVersion1 ? "this machine has cgroups of version 1 only" : "this machine shows no cgroups";
}

function madeDirectory(directory: string): boolean {
  try {
    fs.mkdirSync(directory);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** SIGKILL to all in it at once, those that fork in this moment included; false when it is gone or the kernel (before 5.14) cannot. */
export function killCgroup(cgroupPath: string): boolean {
  const directory = cgroupDirectory(cgroupPath);
  if (directory === undefined) return false;
  try {
    fs.writeFileSync(path.join(directory, "cgroup.kill"), "1", { flag: "r+" });
    return true;
  } catch (error) {
    if (["ENOENT", "ENODEV", "EACCES"].includes(codeOf(error))) return false;
    throw new Failure("system_call_failed", `${directory} could not be killed`, { cause: error });
  }
}

/** Takes an empty one away, with those that the job made in it; one that is not empty stays. */
export function removeCgroup(cgroupPath: string): void {
  const directory = cgroupDirectory(cgroupPath);
  if (directory !== undefined) removeTree(directory);
}

function removeTree(directory: string): void {
  try {
    for (const entry of fs.readdirSync(directory, { withFileTypes: true }))
      if (entry.isDirectory()) removeTree(path.join(directory, entry.name));
    fs.rmdirSync(directory);
  } catch (error) {
    if (!["ENOENT", "EBUSY", "ENOTEMPTY", "EACCES", "EPERM", "ENODEV"].includes(codeOf(error)))
      throw new Failure("system_call_failed", `${directory} could not be removed`, { cause: error });
  }
}
