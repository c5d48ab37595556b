/* SPDX-License-Identifier: Apache-2.0 */
/* Ends every process that the job left behind. The shim is a subreaper, so an orphan of the job becomes its child. Rule: only
   own children that are not reaped yet are signalled, so a pid cannot have been reused; the proof of the end is ECHILD. */

#ifndef HOLDFAST_DESCENDANTS_H
#define HOLDFAST_DESCENDANTS_H

#include "cgroup.h"
#include "child.h"

enum { LOOK_AGAIN_MS = 20 };

/* Field 4 of /proc/PID/stat; the name before it may contain anything, so from the last ")". */
static u64 parent_of(const char *pid) {
  static struct text path, stat;
  path.length = 0;
  put_text(&path, "/proc/");
  put_text(&path, pid);
  put_text(&path, "/stat");
  if (read_small(path.bytes, &stat) < 0) return 0;
  u64 at = stat.length, parent = 0;
  while (at > 0 && stat.bytes[at] != ')') at--;
  for (const char *digit = stat.bytes + at + (at + 4 < stat.length ? 4 : 0); *digit >= '0' && *digit <= '9'; digit++) {
    parent = parent * 10 + (u64)(*digit - '0');
  }
  return parent;
}

/* For kernels without /proc/.../children: every process whose parent is the shim. */
static void kill_children_by_walk(u64 self) {
  static char entries[8192] __attribute__((aligned(8)));
  long directory = open_file("/proc", O_RDONLY | O_DIRECTORY);
  if (directory < 0) return;
  long got;
  while ((got = S3(SYS_getdents64, directory, entries, sizeof entries)) > 0) {
    for (long at = 0; at < got; at += *(unsigned short *)(entries + at + 16)) {
      u64 pid;
      const char *name = entries + at + 19;
      if (number_of(name, &pid) == 0 && pid > 1 && parent_of(name) == self) S2(SYS_kill, pid, SIGKILL);
    }
  }
  S1(SYS_close, directory);
}

/* SIGKILL to every child. One look may miss some: the caller looks until none is left. */
static void kill_children(void) {
  static struct text path, list;
  u64 self = (u64)S0(SYS_getpid), pid = 0;
  path.length = 0;
  put_text(&path, "/proc/self/task/");
  put_number(&path, self);
  put_text(&path, "/children");
  if (read_small(path.bytes, &list) < 0) return kill_children_by_walk(self);
  for (u64 at = 0; at < list.length; at++) {
    if (list.bytes[at] >= '0' && list.bytes[at] <= '9') {
      pid = pid * 10 + (u64)(list.bytes[at] - '0');
    } else {
      if (pid > 1) S2(SYS_kill, pid, SIGKILL);
      pid = 0;
    }
  }
}

/* Kills and reaps until the kernel says that no child is left; how many there were. `wait` waits for what happens meanwhile. */
static u64 end_descendants(void (*wait)(u64)) {
  u64 ended = 0;
  for (;;) {
    long pid = S4(SYS_wait4, -1, 0, WNOHANG | WALL, 0);
    if (pid == -ECHILD) return ended;
    if (pid > 0) {
      ended++;
    } else {
      kill_cgroup();
      kill_children();
      wait(LOOK_AGAIN_MS);
    }
  }
}

#endif
