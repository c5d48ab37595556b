// SPDX-License-Identifier: Apache-2.0
// A disk that fails, for tests: preloaded into a real process, it counts the system calls that touch files below one directory
// and makes the n-th one fail, or tears the n-th write and kills the process. HOLDFAST_FAULT=DIRECTORY:N:KIND, KIND is EIO, ENOSPC,
// torn (half of the bytes, then SIGKILL) or kill. Every counted call appends a letter to HOLDFAST_FAULT_LOG.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char directory[PATH_MAX];
static long fail_at, calls;
static char kind[16];

__attribute__((constructor)) static void read_order(void) {
  const char *order = getenv("HOLDFAST_FAULT");
  if (order != NULL) sscanf(order, "%4095[^:]:%ld:%15s", directory, &fail_at, kind);
}

static void note(char letter) {
  const char *log = getenv("HOLDFAST_FAULT_LOG");
  int fd = log == NULL ? -1 : open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0) return;
  ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  real(fd, &letter, 1);
  close(fd);
}

static int is_below(const char *path) {
  size_t length = strlen(directory);
  return length > 0 && strncmp(path, directory, length) == 0;
}

static int is_below_fd(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return is_below(path) && strstr(path, "locker.lock") == NULL;
}

// 1: this is the call that fails.
static int is_due(char letter) {
  pthread_mutex_lock(&lock);
  int due = ++calls == fail_at;
  pthread_mutex_unlock(&lock);
  note(due ? '!' : letter);
  if (due && strcmp(kind, "kill") == 0) kill(getpid(), SIGKILL);
  return due;
}

static int fail(void) {
  errno = strcmp(kind, "ENOSPC") == 0 ? ENOSPC : EIO;
  return -1;
}

static ssize_t torn(int fd, const void *bytes, size_t length) {
  ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  if (strcmp(kind, "torn") != 0) return fail();
  real(fd, bytes, length / 2);
  kill(getpid(), SIGKILL);
  return fail();
}

ssize_t write(int fd, const void *bytes, size_t length) {
  ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  if (is_below_fd(fd) && is_due('w')) return torn(fd, bytes, length);
  return real(fd, bytes, length);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
  ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
  if (is_below_fd(fd) && is_due('w')) return torn(fd, bytes, length);
  return real(fd, bytes, length, at);
}

int fsync(int fd) {
  int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
  if (is_below_fd(fd) && is_due('f')) return fail();
  return real(fd);
}

int rename(const char *from, const char *to) {
  int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
  if (is_below(to) && is_due('r')) return fail();
  return real(from, to);
}
