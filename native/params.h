/* SPDX-License-Identifier: Apache-2.0 */
/* What to run: the file `params`, records `key=value` that each end with NUL, the first being `version=1`. It holds secrets, so
   it is unlinked as soon as it is read. Rule: an unknown key is refused, because a shim that skips a limit is no limit. */

#ifndef HOLDFAST_PARAMS_H
#define HOLDFAST_PARAMS_H

#include "account.h"

enum { PARAMS_BYTES_MAX = 8 * 1024 * 1024 };
enum number { CPU_SECONDS, ADDRESS_SPACE_BYTES, FILE_SIZE_BYTES, OPEN_FILES, RESOURCES, OUTPUT_BYTES = RESOURCES, WALL_TIME_MS,
              PUMP_FILE_BYTES, PUMP_FILES, NUMBERS };

struct params {
  char *bytes;
  u64 mapped;
  const char *directory;
  const char *cgroup;   /* the directory of one made for this launch; 0: none */
  int is_own_account;   /* the shim's; else the one that jobs run as */
  int is_own_cgroup;    /* one below the shim's own, which systemd made for this launch */
  int is_pump;          /* outputs pass through the shim; else the job writes the files itself */
  u64 numbers[NUMBERS]; /* 0: not given */
  char **arguments;     /* ends with 0 */
  char **environment;   /* ends with 0 */
};

static const char *const number_keys[NUMBERS] = {
  "cpuSeconds=", "addressSpaceBytes=", "fileSizeBytes=", "openFiles=", "outputBytes=", "wallTimeMs=", "pumpFileBytes=", "pumpFiles=",
};
static const int resources[RESOURCES] = {RLIMIT_CPU, RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_NOFILE};

static int is_text(const char *text, const char *expected) {
  const char *rest = after(text, expected);
  return rest != 0 && *rest == 0;
}

static void *map_memory(u64 bytes) {
  long at = sys(SYS_mmap, 0, (long)bytes, 3, 0x22, -1, 0);
  return at < 0 && at > -4096 ? 0 : (void *)at;
}

/* "-" leaves it; 0 would be read as that, so it is refused. */
static long take_number(struct params *to, const char *record) {
  for (int i = 0; i < NUMBERS; i++) {
    const char *value = after(record, number_keys[i]);
    if (value == 0) continue;
    if (is_text(value, "-")) return 0;
    long fault = number_of(value, &to->numbers[i]);
    return fault == 0 && to->numbers[i] == 0 ? -EINVAL : fault;
  }
  return -EINVAL;
}

static long take_word(struct params *to, const char *record) {
  const char *value;
  if (is_text(record, "output=files")) return 0;
  if (is_text(record, "output=pump")) return to->is_pump = 1, 0;
  if (is_text(record, "account=-")) return to->is_own_account = 1, 0;
  if ((value = after(record, "account=")) != 0) return job_account.name != 0 && is_text(value, job_account.name) ? 0 : -EPERM;
  if (is_text(record, "cgroup=-")) return 0;
  if (is_text(record, "cgroup=own")) return to->is_own_cgroup = 1, 0;
  if ((value = after(record, "cgroup=")) != 0) return to->cgroup = value, 0;
  return take_number(to, record);
}

static long take_record(struct params *to, char *record, u64 *arguments, u64 *variables) {
  char *value;
  if ((value = (char *)after(record, "argument=")) != 0) return to->arguments[(*arguments)++] = value, 0;
  if ((value = (char *)after(record, "environment=")) != 0) return to->environment[(*variables)++] = value, 0;
  if ((value = (char *)after(record, "directory=")) != 0) return to->directory = value, 0;
  return take_word(to, record);
}

static long parse_params(struct params *to, u64 length) {
  u64 records = 0, arguments = 0, variables = 0;
  if (length == 0 || to->bytes[length - 1] != 0) return -EINVAL;
  for (u64 i = 0; i < length; i++) records += to->bytes[i] == 0;
  u64 pointers = (records + 2) * sizeof(char *);
  to->arguments = map_memory(pointers);
  to->environment = map_memory(pointers);
  if (to->arguments == 0 || to->environment == 0) return -ENOSPC;
  char *record = to->bytes;
  if (!is_text(record, "version=1")) return -EINVAL;
  for (u64 i = 1; i < records; i++) {
    record += length_of(record) + 1;
    long fault = take_record(to, record, &arguments, &variables);
    if (fault < 0) return fault;
  }
  if (to->is_pump && (to->numbers[PUMP_FILE_BYTES] == 0 || to->numbers[PUMP_FILES] == 0)) return -EINVAL;
  return arguments > 0 && to->directory != 0 ? 0 : -EINVAL;
}

static long read_params(struct params *to) {
  long fd = open_file("params", O_RDONLY | O_NOFOLLOW);
  if (fd < 0) return fd;
  u64 size = size_of(fd);
  if (size > PARAMS_BYTES_MAX) return -EINVAL;
  to->mapped = size + 1;
  to->bytes = map_memory(to->mapped);
  if (to->bytes == 0) return -ENOSPC;
  long length = read_whole(fd, to->bytes, size);
  S1(SYS_close, fd);
  if (length < 0) return length;
  long fault = S3(SYS_unlinkat, AT_FDCWD, "params", 0);
  return fault < 0 ? fault : parse_params(to, (u64)length);
}

/* The secrets leave the shim's memory once the child has its own copy. */
static void forget_params(struct params *params) {
  S2(SYS_munmap, params->bytes, params->mapped);
  params->bytes = 0;
}

#endif
