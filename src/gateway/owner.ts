// SPDX-License-Identifier: Apache-2.0
// Whether the socket that a connection to an upstream reaches belongs to the model's processes. The full look reads the kernel's
// tables (milliseconds); between two of them it is enough that the process that held the listening socket still holds it
// (microseconds): as long as it does, nobody else gets the port. Rule: what cannot be looked at is not ours.

import fs from "node:fs";
import { describeProcess, holderOf, listListeners, processTree, reachedBy } from "../std/listeners.ts";
import { type Identity, isAlive } from "../std/process.ts";
import type { Address } from "./table.ts";

export type Looked = { readonly kind: "ours" } | { readonly kind: "not-ours"; readonly why: string };

/** A descriptor of /proc/pid/stat stays with its process: after its end it reads nothing, whoever has the pid then. */
type Watched = { readonly statFd: number; readonly pid: number };
type Socket = { readonly holder: Watched; readonly link: string; readonly inode: string };

const OURS: Looked = { kind: "ours" };
const stat = Buffer.alloc(1024);

export class Owner implements Disposable {
  readonly #address: Address;
  readonly #identity: Identity;
  #root: Watched | undefined;
  #sockets: readonly Socket[] = [];

  constructor(address: Address, identity: Identity) {
    this.#address = address;
    this.#identity = identity;
  }

  /** What the last full look found, looked at again; a full look when it is not so any more. */
  look(): Looked {
    return this.#isAsBefore() ? OURS : this.lookFully();
  }

  lookFully(): Looked {
    this.#forget();
    const { pid } = this.#identity;
    const { host, port } = this.#address;
    // Opened before the proof: then it is of the process that is proved.
    const root = watch(pid);
    if (root === undefined || !isAlive(this.#identity)) {
      if (root !== undefined) fs.closeSync(root.statFd);
      return { kind: "not-ours", why: `the model's process (pid ${pid}) has ended` };
    }
    this.#root = root;
    const inodes = new Set(reachedBy(listListeners(), host, port).map(({ inode }) => inode));
    if (inodes.size === 0) return this.#notOurs(`nothing listens on port ${port}`);
    const sockets = processTree(pid).flatMap((member) => socketsOf(member, inodes));
    this.#sockets = sockets;
    const foreign = new Set([...inodes].filter((inode) => !sockets.some((socket) => socket.inode === inode)));
    if (foreign.size > 0) return this.#notOurs(`port ${port} is held by ${nameOf(holderOf(foreign))}`);
    return this.#isAsBefore() ? OURS : this.#notOurs("the model's processes changed while they were looked at");
  }

  [Symbol.dispose](): void {
    this.#forget();
  }

  #notOurs(why: string): Looked {
    this.#forget();
    return { kind: "not-ours", why };
  }

  #isAsBefore(): boolean {
    if (this.#root === undefined || this.#sockets.length === 0 || !runs(this.#root)) return false;
    return this.#sockets.every(({ holder, link, inode }) => linkOf(link) === `socket:[${inode}]` && runs(holder));
  }

  #forget(): void {
    for (const { statFd } of [...this.#sockets.map(({ holder }) => holder), ...(this.#root ? [this.#root] : [])])
      fs.closeSync(statFd);
    this.#root = undefined;
    this.#sockets = [];
  }
}

function nameOf(pid: number | undefined): string {
  return pid === undefined ? "another account's process" : describeProcess(pid);
}

function watch(pid: number): Watched | undefined {
  try {
    return { statFd: fs.openSync(`/proc/${pid}/stat`, "r"), pid };
  } catch {
    return undefined;
  }
}

/** A zombie holds no socket. */
function runs({ statFd }: Watched): boolean {
  try {
    const text = stat.toString("latin1", 0, fs.readSync(statFd, stat, 0, stat.length, 0));
    const state = text.charAt(text.lastIndexOf(")") + 2);
    return state !== "" && state !== "Z" && state !== "X";
  } catch {
    return false;
  }
}

function linkOf(link: string): string {
  try {
    return fs.readlinkSync(link);
  } catch {
    return "";
  }
}

/** One descriptor of each of these sockets that the process holds. */
function socketsOf(pid: number, inodes: ReadonlySet<string>): readonly Socket[] {
  const found = new Map<string, string>();
  let names: readonly string[];
  try {
    names = fs.readdirSync(`/proc/${pid}/fd`);
  } catch {
    return [];
  }
  for (const name of names) {
    const link = `/proc/${pid}/fd/${name}`;
    const inode = /^socket:\[(\d+)\]$/.exec(linkOf(link))?.[1];
    if (inode !== undefined && inodes.has(inode)) found.set(inode, link);
  }
  return [...found].flatMap(([inode, link]) => {
    const holder = watch(pid);
    return holder === undefined ? [] : [{ holder, link, inode }];
  });
}
