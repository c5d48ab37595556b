/* SPDX-License-Identifier: Apache-2.0 */
/* What happens between fork and exec, in the child. Rule: the job starts clean (default signals, empty mask, no descriptor but
   0, 1 and 2, its own group) and dies with the shim; whatever fails here is told through the fault pipe and never half run. */

#ifndef HOLDFAST_CHILD_H
#define HOLDFAST_CHILD_H

#include "params.h"

enum { FAULT_FD = 3, CLOSE_AT_MOST = 65536 };
enum stage { STAGE_FORK, STAGE_START, STAGE_LIMITS, STAGE_ACCOUNT, STAGE_DIRECTORY, STAGE_EXEC };
static const char *const stage_names[] = {"fork", "start", "limits", "account", "directory", "exec"};
/* Before the gate the one who holds it is told the status too: it may not be the parent. */
static long told_on = -1;

struct fault { int stage, error; };

static _Noreturn void leave(int status) {
  char byte = (char)status;
  if (told_on >= 0) S3(SYS_write, told_on, &byte, 1);
  for (;;) S1(SYS_exit_group, status);
}

static _Noreturn void give_up(long fd, enum stage stage, long error) {
  struct fault fault = {(int)stage, (int)-error};
  write_whole(fd, (const char *)&fault, sizeof fault);
  leave(127);
}

static void close_from(int first) {
  if (S3(SYS_close_range, first, ~0U, 0) == 0) return;
  /* Kernels before 5.9. */
  for (int fd = first; fd < CLOSE_AT_MOST; fd++) S1(SYS_close, fd);
}

static void default_signals(void) {
  u64 action[4] = {0, 0, 0, 0};
  for (int signal = 1; signal <= 64; signal++) S4(SYS_rt_sigaction, signal, action, 0, 8);
}

/* A limit narrows what the agent has and never widens it. Out of cpu time the job gets SIGXCPU first, so its end has a name. */
static long set_limits(const struct params *params) {
  for (int i = 0; i < RESOURCES; i++) {
    struct rlimit limit;
    u64 wanted = params->numbers[i];
    if (wanted == 0) continue;
    long fault = S4(SYS_prlimit64, 0, resources[i], 0, &limit);
    if (fault < 0) return fault;
    if (wanted < limit.now) limit.now = wanted;
    u64 most = i == CPU_SECONDS ? limit.now + 2 : limit.now;
    if (most < limit.most) limit.most = most;
    fault = S4(SYS_prlimit64, 0, resources[i], &limit, 0);
    if (fault < 0) return fault;
  }
  return 0;
}

static const char *search_path(char **environment) {
  for (; *environment != 0; environment++) {
    const char *value = after(*environment, "PATH=");
    if (value != 0) return value;
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

/* execvp(3) with the PATH of the job; returns minus an errno when nothing could be executed. */
static long execute(const struct params *params) {
  static struct text candidate;
  const char *name = params->arguments[0];
  int has_slash = 0, was_denied = 0;
  for (const char *at = name; *at != 0; at++) has_slash |= *at == '/';
  if (*name == 0) return -ENOENT;
  if (has_slash) return S3(SYS_execve, name, params->arguments, params->environment);
  for (const char *path = search_path(params->environment);; path++) {
    const char *end = path;
    while (*end != 0 && *end != ':') end++;
    candidate.length = 0;
    put(&candidate, path, (u64)(end - path));
    if (end > path) put_text(&candidate, "/");
    put_text(&candidate, name);
    long fault = S3(SYS_execve, candidate.bytes, params->arguments, params->environment);
    if (fault == -EACCES) was_denied = 1;
    else if (fault != -ENOENT && fault != -ENOTDIR) return fault;
    if (*end == 0) return was_denied ? -EACCES : -ENOENT;
    path = end;
  }
}

static long connect_files(long output, long errors, long fault_fd) {
  long null = open_file("/dev/null", O_RDONLY);
  if (null < 0) return null;
  long fault = S3(SYS_dup3, null, 0, 0);
  if (fault >= 0) fault = S3(SYS_dup3, output, 1, 0);
  if (fault >= 0) fault = S3(SYS_dup3, errors, 2, 0);
  if (fault >= 0 && fault_fd != FAULT_FD) fault = S3(SYS_dup3, fault_fd, FAULT_FD, O_CLOEXEC);
  return fault;
}

static _Noreturn void become_job(const struct params *params, long shim, long output, long errors, long fault_fd) {
  u64 none = 0;
  long fault = S2(SYS_setpgid, 0, 0);
  if (fault >= 0) fault = connect_files(output, errors, fault_fd);
  if (fault < 0) give_up(fault_fd, STAGE_START, fault);
  close_from(FAULT_FD + 1);
  if ((fault = set_limits(params)) < 0) give_up(FAULT_FD, STAGE_LIMITS, fault);
  if ((fault = become_account(params->is_own_account)) < 0) give_up(FAULT_FD, STAGE_ACCOUNT, fault);
  /* After the change of account, which forgets it. */
  if ((fault = S2(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL)) < 0) give_up(FAULT_FD, STAGE_START, fault);
  /* The shim may have died before the line above. */
  if (S0(SYS_getppid) != shim) leave(127);
  if ((fault = S1(SYS_chdir, params->directory)) < 0) give_up(FAULT_FD, STAGE_DIRECTORY, fault);
  S4(SYS_rt_sigprocmask, 2, &none, 0, 8);
  give_up(FAULT_FD, STAGE_EXEC, execute(params));
}

#endif
