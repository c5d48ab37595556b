/* SPDX-License-Identifier: Apache-2.0 */
/* The account that jobs run as when it is not the shim's own: named by whoever starts the shim (systemd's unit). The params only
   say whether this one is a job or the agent's own program (a model server), so an agent that was taken over reaches no third
   account. Rule: what is started keeps no right of the shim's: no capability, no saved id, nothing of a set-uid program. */

#ifndef HOLDFAST_ACCOUNT_H
#define HOLDFAST_ACCOUNT_H

#include "files.h"

enum { PASSWD_BYTES_MAX = 4 * 1024 * 1024 };

struct account { const char *name; /* 0: there is none but the shim's own */ u64 uid; };

static struct account job_account;

/* The field of a line of passwd(5) as a number; `line` is cut at its colons and ends with 0. */
static long field_number(char *line, int field, u64 *number) {
  for (; field > 0; field--) {
    while (*line != ':') if (*line++ == 0) return -EINVAL;
    line++;
  }
  char *end = line;
  while (*end != ':' && *end != 0) end++;
  char kept = *end;
  *end = 0;
  long fault = number_of(line, number);
  *end = kept;
  return fault;
}

/* Finds uid and group in /etc/passwd. Neither root nor the shim's own is an account for jobs, nor one whose group this shim was
   not started with. */
static long find_account(const char *name) {
  static char passwd[PASSWD_BYTES_MAX + 1];
  long fd = open_file("/etc/passwd", O_RDONLY);
  if (fd < 0) return fd;
  long length = read_whole(fd, passwd, PASSWD_BYTES_MAX);
  S1(SYS_close, fd);
  if (length < 0) return length;
  for (char *line = passwd, *next; *line != 0; line = next) {
    u64 group;
    next = line;
    while (*next != 0 && *next != '\n') next++;
    if (*next != 0) *next++ = 0;
    const char *rest = after(line, name);
    if (rest == 0 || *rest != ':') continue;
    if (field_number(line, 2, &job_account.uid) < 0 || field_number(line, 3, &group) < 0) return -EINVAL;
    if (job_account.uid == 0 || (long)job_account.uid == S0(SYS_getuid) || (long)group != S0(SYS_getegid)) return -EPERM;
    job_account.name = name;
    return 0;
  }
  return -ENOENT;
}

/* For ever, in this process. From one ordinary uid to another the kernel keeps capabilities: they are dropped by hand. */
static long become_account(int is_own) {
  u32 header[2] = {CAPABILITY_VERSION_3, 0}, none[6] = {0, 0, 0, 0, 0, 0};
  long fault = 0;
  if (job_account.name == 0) return 0;
  if (!is_own) fault = S3(SYS_setresuid, job_account.uid, job_account.uid, job_account.uid);
  if (fault == 0) fault = S5(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (fault == 0) fault = S2(SYS_capset, header, none);
  if (fault == 0) fault = S5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  /* The agent reads what the job leaves by its group. */
  if (!is_own) S1(SYS_umask, 007);
  return fault;
}

#endif
