// SPDX-License-Identifier: Apache-2.0
// What a protection has to know of this machine: its GPUs, accounts and groups, who sits at its desktop, and what of our files
// is there. It only looks.

import fs from "node:fs";
import path from "node:path";
import { codeOf } from "../std/errors.ts";
import { type Group, parseGroups } from "./access.ts";
import { isJetson } from "./jetson.ts";
import { listNames, readText, REAL_ROOTS } from "./kernel-files.ts";
import { readKernelGpus } from "./kernel-gpus.ts";
import { type Guarded, type NodeRights, parseProtection, STATE_FILE, watchedNodes } from "./protection.ts";
import { runTool } from "./tool.ts";

export type Account = { readonly name: string; readonly uid: number; readonly gid: number };

export type Facts = {
  readonly devices: readonly Guarded[];
  readonly accounts: readonly Account[];
  readonly groups: readonly Group[];
  /** Names of those who sit at a graphical session of this machine. */
  readonly desktop: readonly string[];
  readonly state: ReturnType<typeof parseProtection>;
  /** Rights of the nodes that are there, by path. */
  readonly rights: Readonly<Record<string, NodeRights>>;
  /** nvidia-modprobe, if it is installed. */
  readonly modprobe: { readonly path: string; readonly mode: number; readonly isDebian: boolean } | undefined;
  readonly hasSystemd: boolean;
};

/** more: accounts that are asked for one by one as well as those declared; a directory service may not list all it knows. */
export async function readFacts(more: readonly string[] = []): Promise<Facts> {
  const devices = guardedDevices();
  const state = parseProtection(readFileOrUndefined(STATE_FILE));
  const declared = state === undefined || "unreadable" in state ? [] : state.accounts;
  const names = [...new Set([...declared, ...more])];
  const [all, asked, groups] = await Promise.all([
    getent("passwd", []),
    names.length === 0 ? "" : getent("passwd", names),
    getent("group", []),
  ]);
  return {
    devices,
    accounts: uniqueAccounts(parseAccounts(`${all}\n${asked}`)),
    groups: parseGroups(groups),
    desktop: desktopUsers(),
    state,
    rights: Object.fromEntries(nodesOf(devices).flatMap((node) => rightsEntry(path.join("/dev", node)))),
    modprobe: findModprobe(),
    hasSystemd: fs.existsSync("/run/systemd/system"),
  };
}

export function guardedDevices(): readonly Guarded[] {
  return readKernelGpus(REAL_ROOTS)
    .filter((card) => card.driver !== null)
    .map((card) => {
      // NVIDIA's has one as well, which computing does not need and others could use.
      const render = listNames(REAL_ROOTS.sys, "bus/pci/devices", card.address, "drm").filter((name) =>
        /^renderD\d+$/.test(name),
      );
      const nodes = [...new Set([...card.nodes, ...render.map((name) => `dri/${name}`)])];
      return { address: card.address, vendor: card.vendor, nodes, isJetson: isJetson(card) };
    });
}

/** All that may be opened of them, below /dev, there or not. */
export function nodesOf(devices: readonly Guarded[]): readonly string[] {
  return [...new Set([...watchedNodes(devices), ...devices.flatMap(({ nodes }) => nodes)])];
}

export function rightsOf(file: string): NodeRights | undefined {
  try {
    const { mode, uid, gid } = fs.statSync(file);
    return { mode: mode & 0o7777, uid, gid };
  } catch {
    return undefined;
  }
}

function rightsEntry(file: string): readonly (readonly [string, NodeRights])[] {
  const rights = rightsOf(file);
  return rights === undefined ? [] : [[file, rights]];
}

/** Exactly what is there; undefined when nothing is. */
export function readFileOrUndefined(file: string): string | undefined {
  try {
    return fs.readFileSync(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
}

/** It ends with status 2 when it does not know one of the names, and prints the others. */
async function getent(database: "passwd" | "group", names: readonly string[]): Promise<string> {
  const run = await runTool("getent", [database, ...names]);
  if (run.kind === "answered") return run.output;
  return names.length === 0 ? (readText(REAL_ROOTS.etc, database) ?? "") : "";
}

export function parseAccounts(text: string): readonly Account[] {
  return text.split("\n").flatMap((line) => {
    const [name, , uid, gid] = line.split(":");
    if (name === undefined || name === "" || uid === undefined || gid === undefined) return [];
    return /^\d+$/.test(uid) && /^\d+$/.test(gid) ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

function uniqueAccounts(accounts: readonly Account[]): readonly Account[] {
  return [...new Map(accounts.map((account) => [account.name, account])).values()];
}

/** Source: sd-login(3); the files are logind's and readable by everybody. */
function desktopUsers(): readonly string[] {
  const directory = "/run/systemd/sessions";
  const users = listNames(directory).flatMap((name) => {
    const text = readText(directory, name) ?? "";
    const isDesktop = /^CLASS=user$/m.test(text) && /^TYPE=(x11|wayland|mir)$/m.test(text) && /^SEAT=\S/m.test(text);
    const user = /^USER=(\S+)$/m.exec(text)?.[1];
    return isDesktop && user !== undefined ? [user] : [];
  });
  return [...new Set(users)];
}

function findModprobe(): Facts["modprobe"] {
  for (const file of ["/usr/bin/nvidia-modprobe", "/usr/sbin/nvidia-modprobe"]) {
    const rights = rightsOf(file);
    if (rights !== undefined)
      return { path: file, mode: rights.mode, isDebian: fs.existsSync("/usr/bin/dpkg-statoverride") };
  }
  return undefined;
}

/** Who is in a group: listed in it, or with it as their own. */
export function membersOf(group: Group, accounts: readonly Account[]): readonly string[] {
  const own = accounts.filter(({ gid }) => gid === group.gid).map(({ name }) => name);
  return [...new Set([...group.members, ...own])];
}
