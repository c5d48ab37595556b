// SPDX-License-Identifier: Apache-2.0
// Whether an account gets to a device, by really opening its nodes: groups and mode bits alone do not tell (ACLs, device
// filters of a service). Opened by a child with a deadline, because an open can hang in a driver.

import fs from "node:fs";
import path from "node:path";
import { messageOf } from "../std/errors.ts";
import type { Blocked } from "./device.ts";
import { readText, type Roots } from "./kernel-files.ts";
import { runTool } from "./tool.ts";

/** Someone a node can be opened as; without it: as whoever runs this. */
export type OpenAs = { readonly name: string; readonly uid: number; readonly gid: number };

/** How to open: the runtime and src/bin/open-nodes.js. */
export type Opener = readonly [program: string, ...parameters: string[]];

/** What came of each node, by its path: "" was opened, else the errno. */
export type Opened = ReadonlyMap<string, string>;

/** Undefined when it did not end within its deadline or failed as a whole. */
export async function openNodes(
  opener: Opener,
  nodes: readonly string[],
  options: { readonly as?: OpenAs; readonly deadlineMs?: number } = {},
): Promise<Opened | { readonly failed: string }> {
  if (nodes.length === 0) return new Map();
  const { as, ...rest } = options;
  const [program, ...parameters] = opener;
  const who = as === undefined ? [] : ["--as", as.name, String(as.uid), String(as.gid)];
  const run = await runTool(program, [...parameters, ...who, ...nodes], rest);
  if (run.kind === "hung") return { failed: `opening ${nodes.join(", ")} did not end within ${run.afterMs / 1000} s` };
  if (run.kind === "missing") return { failed: `${program} cannot be started` };
  if (run.kind === "failed") return { failed: `opening ${nodes.join(", ")} failed: ${run.message}` };
  try {
    return new Map(Object.entries(JSON.parse(run.output) as Readonly<Record<string, string>>));
  } catch (error) {
    return { failed: `opening ${nodes.join(", ")} failed: ${messageOf(error)}` };
  }
}

/** The driver decides the rest: it may refuse although the account may open the node. */
export const isRefused = (errno: string): boolean => errno === "EACCES" || errno === "EPERM";

/** What stands between an account and a device; undefined when nothing does. */
export function whyBlocked(
  nodes: readonly string[],
  opened: Opened | { readonly failed: string },
  { roots, account }: { readonly roots: Roots; readonly account: string },
): Blocked | undefined {
  if ("failed" in opened) return { state: "unreadable", reason: opened.failed };
  const found = nodes.flatMap((node) => {
    const errno = opened.get(path.join(roots.dev, node)) ?? "ENOENT";
    return errno === "" ? [] : [whyClosed(node, errno, { roots, account })];
  });
  // One that is missing is mended first: its mode is known only then.
  return found.find((blocked) => blocked.state === "node-missing") ?? found[0];
}

type Where = { readonly roots: Roots; readonly account: string };

function whyClosed(node: string, errno: string, where: Where): Blocked {
  const name = `/dev/${node}`;
  if (errno === "ENOENT") return { state: "node-missing", reason: whyMissing(name) };
  if (errno === "EPERM")
    return {
      state: "unreadable",
      reason: `${where.account} may not open ${name}: the service it runs in forbids devices (PrivateDevices=, DevicePolicy=)`,
    };
  if (errno !== "EACCES")
    return { state: "unreadable", reason: `${name} cannot be opened (${errno}): its driver refuses, see dmesg` };
  return { state: "unreadable", reason: whyForbidden(node, where) };
}

function whyMissing(name: string): string {
  if (name.startsWith("/dev/nvidia")) {
    const minor = name === "/dev/nvidiactl" ? "255" : /\d+$/.exec(name)?.[0];
    const command = minor === undefined ? "nvidia-modprobe -u -c 0" : `nvidia-modprobe -c ${minor}`;
    return `${name} does not exist: run ${command}, or holdfast devices protect, which keeps it there`;
  }
  if (name === "/dev/kfd") return `${name} does not exist: the compute part of amdgpu is not loaded`;
  return `${name} does not exist: its driver made no such node`;
}

/** Names the group that opens the node, and whether this account is in it already. */
function whyForbidden(node: string, { roots, account }: Where): string {
  const name = `/dev/${node}`;
  let stat: fs.Stats;
  try {
    stat = fs.statSync(path.join(roots.dev, node));
  } catch {
    return `${account} may not open ${name}`;
  }
  const group = groupById(readText(roots.etc, "group") ?? "", stat.gid);
  const mode = (stat.mode & 0o777).toString(8).padStart(4, "0");
  const shown = `${name} (mode ${mode}, group ${group?.name ?? stat.gid})`;
  if ((stat.mode & 0o060) !== 0o060 || stat.gid === 0)
    return `${account} may not open ${shown}: no group may; see holdfast devices protect`;
  if (group?.members.includes(account) === true)
    return `${account} may not open ${shown}: it is in that group since after this process began; restart the agent`;
  const wanted = group?.name ?? String(stat.gid);
  return `${account} may not open ${shown}: it lacks the group ${wanted}; usermod -aG ${wanted} ${account}, then restart the agent`;
}

export type Group = { readonly name: string; readonly gid: number; readonly members: readonly string[] };

/** The lines of /etc/group. */
export function parseGroups(text: string): readonly Group[] {
  return text.split("\n").flatMap((line) => {
    const [name, , gid, members = ""] = line.split(":");
    if (name === undefined || gid === undefined || !/^\d+$/.test(gid)) return [];
    return [{ name, gid: Number(gid), members: members.split(",").filter((member) => member !== "") }];
  });
}

function groupById(text: string, gid: number): Group | undefined {
  return parseGroups(text).find((group) => group.gid === gid);
}
