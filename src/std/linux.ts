// SPDX-License-Identifier: Apache-2.0
// The few system calls that Node lacks: pidfd_open, pidfd_send_signal, flock, alarm. Calls are synchronous and take microseconds.
// Source: pidfd_open(2), pidfd_send_signal(2), flock(2), alarm(2); 434 and 424 are the same on x86-64 and arm64.

import koffi from "koffi";
import { Failure } from "./errors.ts";

const PIDFD_OPEN = 434;
const PIDFD_SEND_SIGNAL = 424;
const PIDFD_SIGNAL_PROCESS_GROUP = 1 << 2;
const LOCK_EX = 2;
const LOCK_NB = 4;
const PR_SET_DUMPABLE = 4;

const libc = koffi.load(null);
const syscallOpen = libc.func("long syscall(long number, int pid, unsigned int flags)");
const syscallSignal = libc.func("long syscall(long number, int fd, int signal, void *info, unsigned int flags)");
const prctlCall = libc.func(
  "int prctl(int option, unsigned long value, unsigned long a, unsigned long b, unsigned long c)",
);
const flockCall = libc.func("int flock(int fd, int operation)");
const alarmCall = libc.func("unsigned int alarm(unsigned int seconds)");

/** A descriptor for the process (close it with fs.closeSync), or undefined when no process has this pid. */
export function openPidfd(pid: number): number | undefined {
  const fd = Number(syscallOpen(PIDFD_OPEN, pid, 0));
  if (fd >= 0) return fd;
  const errno = koffi.errno();
  if (errno === koffi.os.errno["ESRCH"] || errno === koffi.os.errno["EINVAL"]) return undefined;
  throw new Failure("system_call_failed", `pidfd_open(${pid}) failed with errno ${errno}`);
}

/** Sends a signal through the descriptor; false when the process is gone. Signal 0 only looks. */
export function signalPidfd(fd: number, signal: number): boolean {
  return sendSignal(fd, signal, 0) === "sent";
}

/** To the whole group that this process leads. Kernels before 6.9 do not know it. */
export function signalPidfdGroup(fd: number, signal: number): "sent" | "gone" | "unknown" {
  return sendSignal(fd, signal, PIDFD_SIGNAL_PROCESS_GROUP);
}

function sendSignal(fd: number, signal: number, flags: number): "sent" | "gone" | "unknown" {
  if (Number(syscallSignal(PIDFD_SEND_SIGNAL, fd, signal, null, flags)) === 0) return "sent";
  const errno = koffi.errno();
  if (errno === koffi.os.errno["ESRCH"]) return "gone";
  if (errno === koffi.os.errno["EINVAL"] && flags !== 0) return "unknown";
  throw new Failure("system_call_failed", `pidfd_send_signal failed with errno ${errno}`);
}

/** The kernel ends this process (SIGALRM) after so many seconds, also when it hangs or becomes another program; 0: never. */
export function setAlarm(seconds: number): void {
  alarmCall(seconds);
}

/** Takes the exclusive lock of an open file for the life of its descriptor; false when someone else holds it. */
export function tryLock(fd: number): boolean {
  if (Number(flockCall(fd, LOCK_EX | LOCK_NB)) === 0) return true;
  const errno = koffi.errno();
  if (errno === koffi.os.errno["EWOULDBLOCK"] || errno === koffi.os.errno["EAGAIN"]) return false;
  throw new Failure("system_call_failed", `flock failed with errno ${errno}`);
}

/** From here on no process of the same account reads this one's memory, environment or descriptors. Children are not affected. */
export function forbidInspection(): void {
  if (Number(prctlCall(PR_SET_DUMPABLE, 0, 0, 0, 0)) === 0) return;
  throw new Failure("system_call_failed", `prctl(PR_SET_DUMPABLE) failed with errno ${koffi.errno()}`);
}
