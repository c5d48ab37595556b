// SPDX-License-Identifier: Apache-2.0
// Process identity (boot id, pid, start ticks) and the only way to signal a process that we did not just start:
// open a pidfd, prove the identity through it, signal through it. No window in which the pid can be reused (promise P7).

import fs from "node:fs";
import { openPidfd, signalPidfd } from "./linux.ts";

/** Which process, for ever: pids come back, the three together do not within 10 ms of one boot. */
export type Identity = {
  /** /proc/sys/kernel/random/boot_id */
  readonly bootId: string;
  readonly pid: number;
  /** Field 22 of /proc/pid/stat: clock ticks since boot, as text (64 bit). */
  readonly startTicks: string;
  /** st_ino of the pidfd where the kernel makes it unique per process (≥ 6.9), as text; else absent. */
  readonly pidfdInode?: string;
};

export type Refusal = "gone" | "reused" | "other-boot" | "not-ours-to-signal";
export type Signalled = { readonly kind: "signalled" } | { readonly kind: "refused"; readonly reason: Refusal };

export function bootId(): string {
  return fs.readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
}

export type ProcessStat = {
  /** One letter, proc(5): Z is a zombie, X is dead. */
  readonly state: string;
  readonly parentPid: number;
  readonly groupId: number;
  readonly sessionId: number;
  readonly startTicks: string;
};

/** Reads /proc/pid/stat; undefined when there is no such process. The command name may contain ") R 1 (": parse from the last ")". */
export function readProcessStat(pid: number): ProcessStat | undefined {
  let text: string;
  try {
    text = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    // ENOENT before, ESRCH during the read: the process is gone either way.
    return undefined;
  }
  return parseProcessStat(text);
}

export function parseProcessStat(text: string): ProcessStat | undefined {
  const fields = text
    .slice(text.lastIndexOf(")") + 2)
    .trim()
    .split(" ");
  const [state, parentPid, groupId, sessionId] = fields;
  const startTicks = fields[19];
  if (state === undefined || startTicks === undefined || !/^\d+$/.test(startTicks)) return undefined;
  return { state, parentPid: Number(parentPid), groupId: Number(groupId), sessionId: Number(sessionId), startTicks };
}

/** The identity of a running process; undefined when there is none. */
export function identityOf(pid: number): Identity | undefined {
  const fd = openPidfd(pid);
  if (fd === undefined) return undefined;
  try {
    const stat = readProcessStat(pid);
    if (stat === undefined) return undefined;
    const inode = pidfdInode(fd);
    return {
      bootId: bootId(),
      pid,
      startTicks: stat.startTicks,
      ...(inode === undefined ? {} : { pidfdInode: inode }),
    };
  } finally {
    fs.closeSync(fd);
  }
}

/** Below kernel 6.9 every pidfd shares one inode of anon_inodefs, which proves nothing: told apart by the file system. */
function pidfdInode(fd: number): string | undefined {
  const link = fs.readlinkSync(`/proc/self/fd/${fd}`);
  if (!link.startsWith("pidfd:") && link !== "anon_inode:[pidfd]") return undefined;
  const own = openPidfd(process.pid);
  if (own === undefined) return undefined;
  try {
    const inode = fs.fstatSync(fd, { bigint: true }).ino;
    return inode === fs.fstatSync(own, { bigint: true }).ino && !samePid(fd, own) ? undefined : inode.toString();
  } finally {
    fs.closeSync(own);
  }
}

function samePid(a: number, b: number): boolean {
  return pidOfPidfd(a) === pidOfPidfd(b);
}

function pidOfPidfd(fd: number): string | undefined {
  return /^Pid:\s*(-?\d+)$/m.exec(fs.readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1];
}

type Proved = { readonly kind: "same"; readonly fd: number } | { readonly kind: "refused"; readonly reason: Refusal };

/** Opens a pidfd and proves that it is this identity. On "same" the caller closes the descriptor. A zombie is gone. */
function prove(identity: Identity): Proved {
  if (identity.bootId !== bootId()) return { kind: "refused", reason: "other-boot" };
  if (!Number.isInteger(identity.pid) || identity.pid <= 1 || identity.pid === process.pid) {
    return { kind: "refused", reason: "not-ours-to-signal" };
  }
  const fd = openPidfd(identity.pid);
  if (fd === undefined) return { kind: "refused", reason: "gone" };
  const stat = readProcessStat(identity.pid);
  const reason =
    stat === undefined || "ZX".includes(stat.state) ? "gone" : isSame(identity, stat, fd) ? undefined : "reused";
  if (reason === undefined) return { kind: "same", fd };
  fs.closeSync(fd);
  return { kind: "refused", reason };
}

function isSame(identity: Identity, stat: ProcessStat, fd: number): boolean {
  if (stat.startTicks !== identity.startTicks) return false;
  return identity.pidfdInode === undefined || (pidfdInode(fd) ?? identity.pidfdInode) === identity.pidfdInode;
}

/** Whether exactly this process still runs (a zombie does not). */
export function isAlive(identity: Identity): boolean {
  const proved = identity.pid === process.pid ? proveSelf(identity) : prove(identity);
  if (proved.kind === "refused") return false;
  if (proved.fd >= 0) fs.closeSync(proved.fd);
  return true;
}

function proveSelf(identity: Identity): Proved {
  const own = identityOf(process.pid);
  const same = own?.bootId === identity.bootId && own.startTicks === identity.startTicks;
  return same ? { kind: "same", fd: -1 } : { kind: "refused", reason: "reused" };
}

/** Proves the identity, then sends the signal number through the same descriptor. "gone" is success for whoever wants it dead. */
export function signalIdentity(identity: Identity, signal: number, betweenForTests?: () => void): Signalled {
  const proved = prove(identity);
  if (proved.kind === "refused") return proved;
  try {
    betweenForTests?.();
    return signalPidfd(proved.fd, signal) ? { kind: "signalled" } : { kind: "refused", reason: "gone" };
  } finally {
    fs.closeSync(proved.fd);
  }
}
