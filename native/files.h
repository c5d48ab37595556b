/* SPDX-License-Identifier: Apache-2.0 */
/* The shim's files: whole reads, whole writes, and a replacement that is there completely or not at all, also after a power
   cut. Rule: every name is relative to the launch directory, which is the working directory of the shim. */

#ifndef HOLDFAST_FILES_H
#define HOLDFAST_FILES_H

#include "text.h"

static long open_file(const char *path, int flags) {
  long fd;
  AGAIN(fd, S4(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600));
  return fd;
}

static long read_some(long fd, void *bytes, u64 count) {
  long got;
  AGAIN(got, S3(SYS_read, fd, bytes, count));
  return got;
}

/* Reads until the end or until the room is used up; the count, or minus an errno. */
static long read_whole(long fd, char *bytes, u64 room) {
  u64 have = 0;
  while (have < room) {
    long got = read_some(fd, bytes + have, room - have);
    if (got < 0) return got;
    if (got == 0) break;
    have += (u64)got;
  }
  return (long)have;
}

/* A small file (of /proc) as text; its length, or minus an errno. */
static long read_small(const char *path, struct text *to) {
  long fd = open_file(path, O_RDONLY);
  if (fd < 0) return fd;
  long got = read_whole(fd, to->bytes, sizeof to->bytes - 1);
  S1(SYS_close, fd);
  if (got < 0) return got;
  to->length = (u64)got;
  to->bytes[got] = 0;
  return got;
}

static long write_whole(long fd, const char *bytes, u64 count) {
  while (count > 0) {
    long put;
    AGAIN(put, S3(SYS_write, fd, bytes, count));
    if (put < 0) return put;
    bytes += put;
    count -= (u64)put;
  }
  return 0;
}

/* Makes the bytes of an open temporary file (at offset 0) durable under their final name. */
static long settle_file(long fd, const struct text *content, const char *temporary, const char *name, long directory) {
  long fault = write_whole(fd, content->bytes, content->length);
  if (fault == 0) fault = S2(SYS_ftruncate, fd, content->length);
  if (fault == 0) AGAIN(fault, S1(SYS_fsync, fd));
  if (fault == 0) fault = S5(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, name, 0);
  if (fault == 0) AGAIN(fault, S1(SYS_fsync, directory));
  return fault;
}

static long replace_file(const struct text *content, const char *temporary, const char *name, long directory) {
  long fd = open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (fd < 0) return fd;
  long fault = settle_file(fd, content, temporary, name, directory);
  S1(SYS_close, fd);
  return fault;
}

/* struct statx: the inode is at byte 32, the size at byte 40, on every architecture. */
static u64 statx_of(long fd, int at) {
  u64 fields[32];
  memset(fields, 0, sizeof fields);
  if (S5(SYS_statx, fd, "", AT_EMPTY_PATH, 0x300, fields) < 0) return 0;
  return fields[at / 8];
}

static u64 inode_of(long fd) { return statx_of(fd, 32); }
static u64 size_of(long fd) { return statx_of(fd, 40); }

static u64 now_ms(int clock) {
  struct timespec now = {0, 0};
  S2(SYS_clock_gettime, clock, &now);
  return (u64)now.seconds * 1000 + (u64)now.nanoseconds / 1000000;
}

#endif
