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

static const char *const cgroup_mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

/* Makes "job" below the shim's own and enters that; `path` becomes what /proc/PID/cgroup will show of the job. */
static int enter_own_cgroup(struct text *path) {
  static struct text own, directory;
  if (read_small("/proc/self/cgroup", &own) < 0) return 0;
  const char *line = own.bytes, *found;
  while ((found = after(line, "0::/")) == 0) {
    while (*line != 0 && *line != '\n') line++;
    if (*line == 0) return 0;
    line++;
  }
  const char *end = found;
  while (*end != 0 && *end != '\n') end++;
  path->length = 0;
  put(path, found - 1, (u64)(end - found) + 1);
  put_text(path, "/job");
  for (u64 i = 0; i < sizeof cgroup_mounts / sizeof *cgroup_mounts; i++) {
    directory.length = 0;
    put_text(&directory, cgroup_mounts[i]);
    put_text(&directory, path->bytes);
    long fault = S3(SYS_mkdirat, AT_FDCWD, directory.bytes, 0755);
    if ((fault == 0 || fault == -EEXIST) && enter_cgroup(directory.bytes)) return 1;
  }
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
