// SPDX-License-Identifier: Apache-2.0
// Who listens on a TCP port of this machine, from /proc: which socket a connection to an address would reach, and whether it
// belongs to a process tree. Source: proc(5), net/tcp. Rule: what cannot be looked at is nobody's, never ours.

import fs from "node:fs";
import { allPids, readProcessStat } from "./process.ts";
import { readOrEmpty } from "./files.ts";

export type Listener = {
  /** As in /proc/net/tcp and tcp6: bytes of the address, hexadecimal, in network order. */
  readonly address: string;
  readonly port: number;
  /** Of the socket. */
  readonly inode: string;
};

const LISTEN = "0A";

/** Every TCP socket of this network namespace that listens. */
export function listListeners(): readonly Listener[] {
  return [...parseListeners(readOrEmpty("/proc/self/net/tcp")), ...parseListeners(readOrEmpty("/proc/self/net/tcp6"))];
}

export function parseListeners(table: string): readonly Listener[] {
  return table.split("\n").flatMap((line) => {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    if (state !== LISTEN || !/^\d+$/.test(inode)) return [];
    return [{ address: networkOrder(address), port: Number.parseInt(port, 16), inode }];
  });
}

/** The kernel prints each 32-bit word in the machine's order, which is little-endian wherever we run. */
function networkOrder(hex: string): string {
  return hex.replaceAll(/.{8}/g, (word) => (word.match(/../g) ?? []).toReversed().join("")).toLowerCase();
}

const ANY_4 = "00000000";
const ANY_6 = "0".repeat(32);
const MAPPED = `${"0".repeat(20)}ffff`;

/** IPv4 or IPv6 in hexadecimal, network order; undefined when it is no address. */
export function addressBytes(host: string): string | undefined {
  const four = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(host);
  if (four !== null) {
    const parts = four.slice(1).map(Number);
    return parts.every((part) => part < 256)
      ? parts.map((part) => part.toString(16).padStart(2, "0")).join("")
      : undefined;
  }
  if (!/^[0-9a-f:]+$/i.test(host) || !URL.canParse(`http://[${host}]`)) return undefined;
  const [head = "", tail] = host.toLowerCase().split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const before = groups(head);
  const after = groups(tail ?? "");
  const missing = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...Array.from({ length: missing }, () => "0"), ...after]
    .map((each) => each.padStart(4, "0"))
    .join("");
}

/** The sockets that a connection to this address reaches: the most specific ones, several with SO_REUSEPORT. */
export function reachedBy(listeners: readonly Listener[], host: string, port: number): readonly Listener[] {
  const bytes = addressBytes(host);
  if (bytes === undefined) return [];
  const levels = bytes.length === 8 ? [bytes, `${MAPPED}${bytes}`, ANY_4, ANY_6] : [bytes, ANY_6];
  for (const level of levels) {
    const found = listeners.filter((listener) => listener.port === port && listener.address === level);
    if (found.length > 0) return found;
  }
  return [];
}

/** A process and all that descends from it, as /proc shows it now. */
export function processTree(root: number): readonly number[] {
  const listed = fs.existsSync(`/proc/${process.pid}/task/${process.pid}/children`);
  return listed ? treeByChildren(root) : treeByParents(root);
}

/** Kernels with CONFIG_PROC_CHILDREN: what each thread of a process forked. */
function treeByChildren(root: number): readonly number[] {
  const tree = [root];
  for (let at = 0; at < tree.length; at++) {
    const pid = tree[at] ?? 0;
    for (const thread of namesOrNone(`/proc/${pid}/task`)) {
      const children = readOrEmpty(`/proc/${pid}/task/${thread}/children`).trim();
      if (children !== "") tree.push(...children.split(" ").map(Number));
    }
  }
  return tree;
}

function treeByParents(root: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const pid of allPids()) {
    const parent = readProcessStat(pid)?.parentPid;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const tree = [root];
  for (let at = 0; at < tree.length; at++) tree.push(...(children.get(tree[at] ?? 0) ?? []));
  return tree;
}

/** Of these sockets, which the process holds. */
export function socketsHeldBy(pid: number, inodes: ReadonlySet<string>): ReadonlySet<string> {
  const held = new Set<string>();
  for (const fd of namesOrNone(`/proc/${pid}/fd`)) {
    const inode = /^socket:\[(\d+)\]$/.exec(linkOrEmpty(`/proc/${pid}/fd/${fd}`))?.[1];
    if (inode !== undefined && inodes.has(inode)) held.add(inode);
  }
  return held;
}

export type PortOwner =
  | { readonly kind: "nobody" }
  /** Every socket that a connection would reach. */
  | { readonly kind: "ours" }
  /** pid: undefined when it is another account's, and /proc does not show whose. */
  | { readonly kind: "other"; readonly pid: number | undefined };

/** Whose socket a connection to host:port reaches. tree: the process ids that are ours. */
export function ownerOf(host: string, port: number, tree: readonly number[]): PortOwner {
  const inodes = new Set(reachedBy(listListeners(), host, port).map(({ inode }) => inode));
  if (inodes.size === 0) return { kind: "nobody" };
  const ours = new Set(tree.flatMap((pid) => [...socketsHeldBy(pid, inodes)]));
  const foreign = new Set([...inodes].filter((inode) => !ours.has(inode)));
  return foreign.size === 0 ? { kind: "ours" } : { kind: "other", pid: holderOf(foreign) };
}

/** The first process that holds one of them. */
export function holderOf(inodes: ReadonlySet<string>): number | undefined {
  return allPids().find((pid) => socketsHeldBy(pid, inodes).size > 0);
}

/** For people: "python3 (pid 77, up since 2026-01-01T00:00:00Z): python3 -m http.server". */
export function describeProcess(pid: number): string {
  const name = readOrEmpty(`/proc/${pid}/comm`).trim();
  const command = readOrEmpty(`/proc/${pid}/cmdline`).split("\0").join(" ").trim().slice(0, 200);
  const since = startedAt(pid);
  return `${name} (pid ${pid}${since === undefined ? "" : `, started ${since}`})${command === "" ? "" : `: ${command}`}`;
}

const TICKS_PER_SECOND = 100;

function startedAt(pid: number): string | undefined {
  const ticks = readProcessStat(pid)?.startTicks;
  const boot = /^btime (\d+)$/m.exec(readOrEmpty("/proc/stat"))?.[1];
  if (ticks === undefined || boot === undefined) return undefined;
  return new Date((Number(boot) + Number(ticks) / TICKS_PER_SECOND) * 1000).toISOString().slice(0, 19) + "Z";
}

function namesOrNone(directory: string): readonly string[] {
  try {
    return fs.readdirSync(directory);
  } catch {
    return [];
  }
}

function linkOrEmpty(file: string): string {
  try {
    return fs.readlinkSync(file);
  } catch {
    return "";
  }
}
