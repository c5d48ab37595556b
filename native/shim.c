/* SPDX-License-Identifier: Apache-2.0 */
/* shim LAUNCH_DIRECTORY < gate: the parent of exactly one job. It names itself in `identity`, runs the job once a byte comes
   through the gate, ends everything the job left behind and writes `exit`, with or without an agent. Rules: no byte, no job;
   an `exit` file means that nothing of the job runs any more; src/launcher reads and writes the same files. */

#include "descendants.h"

/* Exit statuses for the agent (src/launcher/shim.ts names them); what became of the job is in `exit` only. */
enum { BAD_USAGE = 64, BAD_DIRECTORY = 66, BAD_PARAMS = 65, BAD_OUTPUT = 73, BAD_IDENTITY = 74, BAD_EXIT = 75 };
enum { EXIT_TRIES = 300, PIDFS_MAGIC = 0x50494446 };

struct launch {
  struct params params;
  long directory, output, errors, exit_reserve, signals;
  long child, fault_pipe;
  u64 started_ms, descendants;
  int stop_asked, kill_asked;
};

static struct launch launch;

static void clean_start(void) {
  u64 all = ~0UL, watched = 1UL << (SIGTERM - 1) | 1UL << (SIGUSR1 - 1) | 1UL << (SIGCHLD - 1);
  long fd;
  S4(SYS_rt_sigprocmask, 2, &all, 0, 8);
  default_signals();
  close_from(3);
  while ((fd = open_file("/dev/null", O_RDONLY)) >= 0 && fd < 3) {}
  S1(SYS_close, fd);
  S1(SYS_umask, 077);
  S0(SYS_setsid);
  S2(SYS_prctl, PR_SET_NAME, "holdfast-shim");
  if (S2(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1) < 0) leave(BAD_USAGE);
  launch.signals = S4(SYS_signalfd4, -1, &watched, 8, O_CLOEXEC | O_NONBLOCK);
  if (launch.signals < 0) leave(BAD_USAGE);
}

static void put_boot_id(struct text *to) {
  static struct text boot;
  if (read_small("/proc/sys/kernel/random/boot_id", &boot) < 36) leave(BAD_IDENTITY);
  put(to, boot.bytes, 36);
}

/* Field 22 of /proc/self/stat, counted from the last ")". */
static void put_start_ticks(struct text *to) {
  static struct text stat;
  if (read_small("/proc/self/stat", &stat) < 0) leave(BAD_IDENTITY);
  const char *at = stat.bytes + stat.length, *end;
  while (at > stat.bytes && *at != ')') at--;
  for (int field = 2; field < 22; field++) {
    while (*at != 0 && *at != ' ') at++;
    if (*at == 0) leave(BAD_IDENTITY);
    at++;
  }
  for (end = at; *end >= '0' && *end <= '9';) end++;
  put(to, at, (u64)(end - at));
}

/* From kernel 6.9 the inode of a pidfd is unique for the process; before that all share one, which proves nothing. */
static void put_pidfd_inode(struct text *to) {
  u64 file_system[32];
  long fd = S2(SYS_pidfd_open, S0(SYS_getpid), 0);
  if (fd < 0) return;
  if (S2(SYS_fstatfs, fd, file_system) == 0 && file_system[0] == PIDFS_MAGIC) {
    put_text(to, ",\"pidfdInode\":\"");
    put_number(to, inode_of(fd));
    put_text(to, "\"");
  }
  S1(SYS_close, fd);
}

static void write_identity(void) {
  static struct text json;
  put_text(&json, "{\"version\":1,\"bootId\":\"");
  put_boot_id(&json);
  put_text(&json, "\"");
  put_field(&json, "pid", (u64)S0(SYS_getpid));
  put_text(&json, ",\"startTicks\":\"");
  put_start_ticks(&json);
  put_text(&json, "\"");
  put_pidfd_inode(&json);
  put_text(&json, "}\n");
  if (replace_file(&json, "identity.tmp", "identity", launch.directory) < 0) leave(BAD_IDENTITY);
}

static void open_outputs(void) {
  int flags = O_WRONLY | O_CREAT | O_EXCL;
  launch.output = open_file("stdout", flags | O_APPEND);
  launch.errors = open_file("stderr", flags | O_APPEND);
  /* Room for the exit file is taken before the job can fill the disk. */
  launch.exit_reserve = open_file("exit.tmp", flags);
  if (launch.output < 0 || launch.errors < 0 || launch.exit_reserve < 0) leave(BAD_OUTPUT);
  long fault = S4(SYS_fallocate, launch.exit_reserve, 0, 0, 512);
  if (fault < 0 && fault != -EOPNOTSUPP) leave(BAD_OUTPUT);
}

static void write_exit(struct text *json) {
  put_field(json, "endedAtMs", now_ms());
  if (launch.started_ms > 0) put_field(json, "startedAtMs", launch.started_ms);
  /* The exit file must not claim bytes that a power cut takes away. */
  if (size_of(launch.output) > 0) S1(SYS_fdatasync, launch.output);
  if (size_of(launch.errors) > 0) S1(SYS_fdatasync, launch.errors);
  put_field(json, "stdoutBytes", size_of(launch.output));
  put_field(json, "stderrBytes", size_of(launch.errors));
  put_field(json, "descendants", launch.descendants);
  put_claim(json, "stopAsked", launch.stop_asked);
  put_claim(json, "killAsked", launch.kill_asked);
  put_text(json, "}\n");
  long fault = settle_file(launch.exit_reserve, json, "exit.tmp", "exit", launch.directory);
  /* A new file each time: after a failed fsync the old one may look clean although its bytes are lost. */
  for (int tries = 0; fault < 0 && tries < EXIT_TRIES; tries++) {
    struct timespec second = {1, 0};
    S5(SYS_ppoll, 0, 0, &second, 0, 8);
    fault = replace_file(json, "exit.tmp", "exit", launch.directory);
  }
  leave(fault < 0 ? BAD_EXIT : 0);
}

static struct text *begin_exit(const char *kind) {
  static struct text json;
  put_text(&json, "{\"version\":1,\"kind\":\"");
  put_text(&json, kind);
  put_text(&json, "\"");
  return &json;
}

static void write_exec_failed(struct fault fault) {
  struct text *json = begin_exit("exec-failed");
  put_text(json, ",\"stage\":\"");
  put_text(json, stage_names[fault.stage]);
  put_text(json, "\"");
  put_field(json, "errno", (u64)fault.error);
  write_exit(json);
}

/* Takes the waiting signals: remembers what was asked and passes it on while the job is there (not reaped: no reuse). */
static void take_signals(long signals) {
  u32 info[32];
  while (read_some(signals, info, sizeof info) == sizeof info) {
    if (info[0] == SIGTERM) launch.stop_asked = 1;
    if (info[0] == SIGUSR1) launch.kill_asked = 1;
    if (info[0] == SIGTERM && launch.child > 0) {
      S2(SYS_kill, -launch.child, SIGTERM);
      /* A stopped job would never see it. */
      S2(SYS_kill, -launch.child, SIGCONT);
    }
    if (info[0] == SIGUSR1 && launch.child > 0) S2(SYS_kill, -launch.child, SIGKILL);
    if (info[0] == SIGUSR1) kill_children();
  }
}

/* Returns when the byte came; anything else (no agent any more, asked to stop) ends the launch unstarted. */
static void wait_gate(void) {
  struct pollfd both[2] = {{0, POLLIN, 0}, {(int)launch.signals, POLLIN, 0}};
  char byte = 0;
  do S5(SYS_ppoll, both, 2, 0, 0, 8); while (both[0].revents == 0 && both[1].revents == 0);
  take_signals(launch.signals);
  int is_asked_to_end = launch.stop_asked || launch.kill_asked;
  if (is_asked_to_end || read_some(0, &byte, 1) != 1 || byte != 'g') write_exit(begin_exit("not-started"));
  long null = open_file("/dev/null", O_RDONLY);
  if (null < 0 || S3(SYS_dup3, null, 0, 0) < 0) write_exec_failed((struct fault){STAGE_START, (int)-null});
  S1(SYS_close, null);
}

static void start_job(void) {
  int pipe[2];
  long shim = S0(SYS_getpid);
  launch.started_ms = now_ms();
  long fault = S2(SYS_pipe2, pipe, O_CLOEXEC | O_NONBLOCK);
  if (fault == 0) fault = launch.child = S5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (fault < 0) write_exec_failed((struct fault){STAGE_FORK, (int)-fault});
  if (launch.child == 0) become_job(&launch.params, shim, launch.output, launch.errors, pipe[1]);
  /* Here too, so that a signal to the group finds it; after the exec it is refused, and then the child has done it. */
  S2(SYS_setpgid, launch.child, launch.child);
  S1(SYS_close, pipe[1]);
  launch.fault_pipe = pipe[0];
  forget_params(&launch.params);
}

/* Reaps orphans until the job itself ended, and leaves that one unreaped: its pid and group stay ours. */
static void wait_job(void) {
  for (;;) {
    u32 info[32] = {0};
    long fault;
    AGAIN(fault, S5(SYS_waitid, P_ALL, 0, info, WEXITED | WNOHANG | WNOWAIT | WALL, 0));
    long pid = fault == 0 ? (long)info[4] : 0;
    if (pid == launch.child) return;
    if (pid > 0) {
      S4(SYS_wait4, pid, 0, WNOHANG | WALL, 0);
    } else {
      wait_readable(launch.signals, 3600000);
      take_signals(launch.signals);
    }
  }
}

static void settle_job(void) {
  u32 status = 0;
  struct fault fault;
  long leader = launch.child, got;
  S2(SYS_kill, -leader, SIGKILL);
  AGAIN(got, S4(SYS_wait4, leader, &status, WALL, 0));
  launch.child = 0;
  launch.descendants = end_descendants(launch.signals, take_signals);
  if (read_some(launch.fault_pipe, &fault, sizeof fault) == sizeof fault) write_exec_failed(fault);
  u32 signal = status & 0x7f;
  struct text *json = begin_exit(signal == 0 ? "exited" : "signalled");
  put_field(json, signal == 0 ? "code" : "signal", signal == 0 ? status >> 8 & 0xff : signal);
  write_exit(json);
}

__attribute__((used, noreturn)) void shim_main(u64 *stack) {
  char **arguments = (char **)(stack + 1);
  if (stack[0] != 2) leave(BAD_USAGE);
  clean_start();
  if (S1(SYS_chdir, arguments[1]) < 0) leave(BAD_DIRECTORY);
  launch.directory = open_file(".", O_RDONLY | O_DIRECTORY);
  if (launch.directory < 0) leave(BAD_DIRECTORY);
  if (read_params(&launch.params) < 0) leave(BAD_PARAMS);
  open_outputs();
  write_identity();
  wait_gate();
  start_job();
  wait_job();
  settle_job();
  leave(0);
}
