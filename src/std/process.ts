// SPDX-License-Identifier: Apache-2.0
// Process identity (boot id, pid, start ticks) and the only way to signal a process that we did not just start:
// open a pidfd, prove the identity through it, signal through it. No window in which the pid can be reused (promise P7).

import fs from "node:fs";
import { openPidfd, signalPidfd, signalPidfdGroup } from "./linux.ts";

/** Which process, for ever. Start ticks are 10 ms coarse, so where the kernel gives it the pidfd's inode is compared too. */
export type Identity = {
  /** /proc/sys/kernel/random/boot_id */
  readonly bootId: string;
  readonly pid: number;
  /** Field 22 of /proc/pid/stat: clock ticks since boot, as text (64 bit). */
  readonly startTicks: string;
  /** st_ino of the pidfd where the kernel makes it unique per process (≥ 6.9), as text; else absent. */
  readonly pidfdInode?: string;
};

/**
 * legacy: the record does not say which process (boot, pid above 1 and start ticks are needed). reused: the pid is another
 * process's now, ours included. not-group-leader: it leads no group, or the group is our own.
 */
export type Refusal = "gone" | "reused" | "other-boot" | "legacy" | "not-group-leader";
/** An identity as an older or a foreign program may have recorded it. */
export type RecordedIdentity = { readonly [key in keyof Identity]?: Identity[key] | undefined };
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
function prove(recorded: RecordedIdentity): Proved {
  const identity = wholeOf(recorded);
  if (identity === undefined) return { kind: "refused", reason: "legacy" };
  if (identity.bootId !== bootId()) return { kind: "refused", reason: "other-boot" };
  if (identity.pid === process.pid) return { kind: "refused", reason: "reused" };
  const fd = openPidfd(identity.pid);
  if (fd === undefined) return { kind: "refused", reason: "gone" };
  const stat = readProcessStat(identity.pid);
  const reason =
    stat === undefined || "ZX".includes(stat.state) ? "gone" : isSame(identity, stat, fd) ? undefined : "reused";
  if (reason === undefined) return { kind: "same", fd };
  fs.closeSync(fd);
  return { kind: "refused", reason };
}

/** Undefined unless it names one process: what is missing is never guessed, and pid 1, 0 or below is nobody's job. */
function wholeOf({ bootId, pid, startTicks, pidfdInode }: RecordedIdentity): Identity | undefined {
  if (bootId === undefined || bootId === "" || startTicks === undefined || !/^\d+$/.test(startTicks)) return undefined;
  if (pid === undefined || !Number.isInteger(pid) || pid <= 1) return undefined;
  return { bootId, pid, startTicks, ...(pidfdInode === undefined ? {} : { pidfdInode }) };
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
export function signalIdentity(identity: RecordedIdentity, signal: number, betweenForTests?: () => void): Signalled {
  const proved = prove(identity);
  if (proved.kind === "refused") return proved;
  try {
    betweenForTests?.();
    return signalPidfd(proved.fd, signal) ? { kind: "signalled" } : { kind: "refused", reason: "gone" };
  } finally {
    fs.closeSync(proved.fd);
  }
}

/** The same to the process group that this identity leads. It proves nothing about the group's end: kill(2) is glad of one member. */
export function signalGroup(identity: RecordedIdentity, signal: number, betweenForTests?: () => void): Signalled {
  const proved = prove(identity);
  if (proved.kind === "refused") return proved;
  try {
    const group = readProcessStat(identity.pid ?? 0)?.groupId;
    const isOurs = group === readProcessStat(process.pid)?.groupId;
    if (group !== identity.pid || isOurs) return { kind: "refused", reason: "not-group-leader" };
    betweenForTests?.();
    const sent = signalPidfdGroup(proved.fd, signal);
    const isSent = sent === "unknown" ? signalMembers(group, proved.fd, signal) : sent === "sent";
    return isSent ? { kind: "signalled" } : { kind: "refused", reason: "gone" };
  } finally {
    fs.closeSync(proved.fd);
  }
}

/** For kernels before 6.9: one by one. While the leader lives no other group can have its number. */
function signalMembers(group: number | undefined, leader: number, signal: number): boolean {
  let isAny = false;
  for (const pid of allPids()) {
    const fd = openPidfd(pid);
    if (fd === undefined) continue;
    try {
      const isMember = readProcessStat(pid)?.groupId === group && signalPidfd(leader, 0);
      if (isMember && signalPidfd(fd, signal)) isAny = true;
    } finally {
      fs.closeSync(fd);
    }
  }
  return isAny;
}

/** Every process that /proc shows at this moment. */
export function allPids(): readonly number[] {
  return fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}
