/* SPDX-License-Identifier: Apache-2.0 */
/* The control group of one launch, where the agent was allowed to make one. The job is born in it; the shim stays outside, so
   that killing the group leaves someone to tell the end. Rule: it is tried before the gate; what does not work is not claimed. */

#ifndef HOLDFAST_CGROUP_H
#define HOLDFAST_CGROUP_H

#include "files.h"

static long cgroup = -1;

/* A fork, into the cgroup where there is one. Source: clone3(2), Linux 5.7. */
static long fork_job(void) {
  if (cgroup < 0) return S5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  /* struct clone_args: flags first, exit_signal fifth, cgroup eleventh. */
  u64 arguments[11];
  memset(arguments, 0, sizeof arguments);
  arguments[0] = CLONE_INTO_CGROUP;
  arguments[4] = SIGCHLD;
  arguments[10] = (u64)cgroup;
  return S2(SYS_clone3, arguments, sizeof arguments);
}

/* Whether a child really gets there: rights and old kernels show only then. */
static int enter_cgroup(const char *path) {
  cgroup = open_file(path, O_RDONLY | O_DIRECTORY);
  if (cgroup < 0) return 0;
  long child = fork_job(), ignored;
  if (child == 0) for (;;) S1(SYS_exit_group, 0);
  if (child > 0) {
    AGAIN(ignored, S4(SYS_wait4, child, 0, WALL, 0));
    return 1;
  }
  S1(SYS_close, cgroup);
  cgroup = -1;
  return 0;
}

/* SIGKILL to all that is in it, a process that forks just now included. Kernels before 5.14 lack the file. */
static void kill_cgroup(void) {
  if (cgroup < 0) return;
  long fd = S4(SYS_openat, cgroup, "cgroup.kill", O_WRONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  S3(SYS_write, fd, "1", 1);
  S1(SYS_close, fd);
}

#endif
