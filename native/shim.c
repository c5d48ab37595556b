/* SPDX-License-Identifier: Apache-2.0 */
/* shim LAUNCH_DIRECTORY < gate, or shim --gate [ACCOUNT] < gate, where the first line through the gate names the directory and
   jobs run as that account: the parent of exactly one job. It names itself in `identity`, runs the job once a byte comes
   through the gate, ends everything the job left behind and writes `exit`, with or without an agent. Rules: no byte, no job;
   an `exit` file means that nothing of the job runs any more; src/launcher reads and writes the same files. */

#include "descendants.h"
#include "output.h"

/* Exit statuses for the agent (src/launcher/shim.ts names them); what became of the job is in `exit` only. */
enum { BAD_USAGE = 64, BAD_DIRECTORY = 66, BAD_PARAMS = 65, BAD_ACCOUNT = 67, BAD_OUTPUT = 73, BAD_IDENTITY = 74, BAD_EXIT = 75 };
enum { EXIT_TRIES = 300, EXIT_BYTES = 1024, PIDFS_MAGIC = 0x50494446 };
/* How often the length of an output file is looked at, from how much room it still has; how long a job that is out of time gets. */
enum { FASTEST_BYTES_PER_MS = 2000000, LOOK_MIN_MS = 10, LOOK_MAX_MS = 1000, LIMIT_GRACE_MS = 5000, FOREVER_MS = 3600000 };

struct launch {
  struct params params;
  long directory, exit_reserve, signals;
  long child, fault_pipe;
  u64 started_ms, descendants, deadline_ms;
  int stop_asked, kill_asked;
  const char *breach; /* the limit that ended it */
};

static struct launch launch;

/* An agent that the kernel's killer spares passes that on; what it starts is not spared. Raising needs no right. */
static void be_killable(void) {
  static struct text score;
  if (read_small("/proc/self/oom_score_adj", &score) < 1 || score.bytes[0] != '-') return;
  long fd = open_file("/proc/self/oom_score_adj", O_WRONLY);
  if (fd < 0) return;
  S3(SYS_write, fd, "0", 1);
  S1(SYS_close, fd);
}

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
  be_killable();
  /* A job of the same account must not look into it. */
  S2(SYS_prctl, PR_SET_DUMPABLE, 0);
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
  if (launch.params.cgroup != 0) put_claim(&json, "isInCgroup", enter_cgroup(launch.params.cgroup));
  if (launch.params.is_own_cgroup) {
    static struct text own;
    int is_in = enter_own_cgroup(&own);
    put_claim(&json, "isInCgroup", is_in);
    if (is_in) put_string(&json, "cgroup", own.bytes);
  }
  put_text(&json, "}\n");
  if (replace_file(&json, "identity.tmp", "identity", launch.directory) < 0) leave(BAD_IDENTITY);
}

static void open_outputs(void) {
  for (int i = 0; i < 2; i++) if (open_stream(&outputs[i], &launch.params) < 0) leave(BAD_OUTPUT);
  /* Room for the exit file is taken before the job can fill the disk. */
  launch.exit_reserve = open_file("exit.tmp", O_WRONLY | O_CREAT | O_EXCL);
  if (launch.exit_reserve < 0) leave(BAD_OUTPUT);
  long fault = S4(SYS_fallocate, launch.exit_reserve, 0, 0, EXIT_BYTES);
  if (fault < 0 && fault != -EOPNOTSUPP) leave(BAD_OUTPUT);
}

static void write_exit(struct text *json) {
  put_field(json, "endedAtMs", now_ms(CLOCK_REALTIME));
  if (launch.started_ms > 0) put_field(json, "startedAtMs", launch.started_ms);
  for (int i = 0; i < 2; i++) {
    settle_stream(&outputs[i], &launch.params);
    put_stream(json, &outputs[i]);
  }
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
    /* The directory itself was removed: it never comes back. */
    if (fault == -ENOENT) break;
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

static void stop_job(void) {
  if (launch.child <= 0) return;
  S2(SYS_kill, -launch.child, SIGTERM);
  /* A stopped job would never see it. */
  S2(SYS_kill, -launch.child, SIGCONT);
}

static void kill_job(void) {
  if (launch.child > 0) S2(SYS_kill, -launch.child, SIGKILL);
  kill_cgroup();
  kill_children();
}

/* Takes the waiting signals: remembers what was asked and passes it on while the job is there (not reaped: no reuse). */
static void take_signals(void) {
  u32 info[32];
  while (read_some(launch.signals, info, sizeof info) == sizeof info) {
    if (info[0] == SIGTERM) launch.stop_asked = 1, stop_job();
    if (info[0] == SIGUSR1) launch.kill_asked = 1, kill_job();
  }
}

/* Ends a job that is beyond its output (at once) or its time (with a grace); for how long nothing can happen. */
static u64 check_limits(void) {
  u64 look = FOREVER_MS, limit = launch.params.numbers[OUTPUT_BYTES], now = now_ms(CLOCK_BOOTTIME);
  if (limit > 0) {
    u64 most = most_written();
    if (most > limit && launch.breach == 0) launch.breach = "output";
    if (most > limit) kill_job();
    look = most > limit ? LOOK_MAX_MS : (limit - most) / FASTEST_BYTES_PER_MS;
    look = look < LOOK_MIN_MS ? LOOK_MIN_MS : look > LOOK_MAX_MS ? LOOK_MAX_MS : look;
  }
  if (launch.deadline_ms == 0) return look;
  if (now >= launch.deadline_ms) {
    if (launch.breach == 0) launch.breach = "wall-time", stop_job();
    else kill_job();
    launch.deadline_ms = now + LIMIT_GRACE_MS;
  }
  return launch.deadline_ms - now < look ? launch.deadline_ms - now : look;
}

/* Waits until a signal comes, a pump has something, or the time is over; deals with the first two. */
static void wait_event(u64 ms) {
  struct pollfd all[3] = {{(int)launch.signals, POLLIN, 0}, {(int)outputs[0].pipe, POLLIN, 0}, {(int)outputs[1].pipe, POLLIN, 0}};
  struct timespec limit = {(long)(ms / 1000), (long)(ms % 1000 * 1000000)};
  S5(SYS_ppoll, all, 3, &limit, 0, 8);
  take_signals();
  for (int i = 0; i < 2; i++) pump(&outputs[i], &launch.params);
}

/* The launch directory, up to the end of the line. */
static const char *read_directory(void) {
  static char name[4096];
  for (u64 at = 0; at < sizeof name; at++) {
    if (read_some(0, name + at, 1) != 1) leave(BAD_DIRECTORY);
    if (name[at] != '\n') continue;
    name[at] = 0;
    return name;
  }
  leave(BAD_DIRECTORY);
}

/* Returns when the byte came; anything else (no agent any more, asked to stop) ends the launch unstarted. */
static void wait_gate(void) {
  struct pollfd both[2] = {{0, POLLIN, 0}, {(int)launch.signals, POLLIN, 0}};
  char byte = 0;
  int is_asked_to_end = 0;
  while (both[0].revents == 0 && !is_asked_to_end) {
    S5(SYS_ppoll, both, 2, 0, 0, 8);
    take_signals();
    is_asked_to_end = launch.stop_asked || launch.kill_asked;
  }
  if (is_asked_to_end || read_some(0, &byte, 1) != 1 || byte != 'g') write_exit(begin_exit("not-started"));
  told_on = -1;
  long null = open_file("/dev/null", O_RDONLY);
  if (null < 0 || S3(SYS_dup3, null, 0, 0) < 0) write_exec_failed((struct fault){STAGE_START, (int)-null});
  S1(SYS_close, null);
}

static void start_job(void) {
  int pipe[2];
  long shim = S0(SYS_getpid);
  launch.started_ms = now_ms(CLOCK_REALTIME);
  long fault = S2(SYS_pipe2, pipe, O_CLOEXEC | O_NONBLOCK);
  if (fault == 0) fault = launch.child = fork_job();
  if (fault < 0) write_exec_failed((struct fault){STAGE_FORK, (int)-fault});
  if (launch.child == 0) become_job(&launch.params, shim, child_end_of(&outputs[0]), child_end_of(&outputs[1]), pipe[1]);
  /* Here too, so that a signal to the group finds it; after the exec it is refused, and then the child has done it. */
  S2(SYS_setpgid, launch.child, launch.child);
  S1(SYS_close, pipe[1]);
  launch.fault_pipe = pipe[0];
  for (int i = 0; i < 2; i++) close_child_end(&outputs[i]);
  if (launch.params.numbers[WALL_TIME_MS] > 0) launch.deadline_ms = now_ms(CLOCK_BOOTTIME) + launch.params.numbers[WALL_TIME_MS];
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
      wait_event(check_limits());
    }
  }
}

/* A limit of the kernel shows in the signal; the hard limit of the cpu time is SIGKILL, and then the time that was used tells. */
static const char *breached_limit(u32 signal, const u64 *usage) {
  const u64 *numbers = launch.params.numbers;
  if (launch.breach != 0) return launch.breach;
  if (signal == SIGXFSZ && numbers[FILE_SIZE_BYTES] > 0) return "file-size";
  if (numbers[CPU_SECONDS] == 0) return 0;
  int is_out_of_time = signal == SIGKILL && !launch.kill_asked && usage[0] + usage[2] >= numbers[CPU_SECONDS];
  return signal == SIGXCPU || is_out_of_time ? "cpu-seconds" : 0;
}

static void settle_job(void) {
  u32 status = 0;
  u64 usage[32]; /* struct rusage: user seconds and microseconds, system seconds and microseconds */
  struct fault fault;
  long leader = launch.child, got;
  memset(usage, 0, sizeof usage);
  S2(SYS_kill, -leader, SIGKILL);
  AGAIN(got, S4(SYS_wait4, leader, &status, WALL, usage));
  launch.child = 0;
  launch.descendants = end_descendants(wait_event);
  if (read_some(launch.fault_pipe, &fault, sizeof fault) == sizeof fault) write_exec_failed(fault);
  /* It may have written too much and ended before anyone looked. */
  u64 limit = launch.params.numbers[OUTPUT_BYTES];
  if (limit > 0 && launch.breach == 0 && most_written() > limit) launch.breach = "output";
  u32 signal = status & 0x7f;
  struct text *json = begin_exit(signal == 0 ? "exited" : "signalled");
  put_field(json, signal == 0 ? "code" : "signal", signal == 0 ? status >> 8 & 0xff : signal);
  const char *breach = breached_limit(signal, usage);
  if (breach != 0) put_text(json, ",\"limit\":\""), put_text(json, breach), put_text(json, "\"");
  write_exit(json);
}

__attribute__((used, noreturn)) void shim_main(u64 *stack) {
  char **arguments = (char **)(stack + 1);
  int is_told = stack[0] >= 2 && is_text(arguments[1], "--gate");
  if (stack[0] != 2 && (!is_told || stack[0] != 3)) leave(BAD_USAGE);
  clean_start();
  if (is_told) told_on = 0;
  /* Read before anything can fail: an end with something unread would take the status away from who waits for it. */
  const char *directory = is_told ? read_directory() : arguments[1];
  if (stack[0] == 3 && find_account(arguments[2]) < 0) leave(BAD_ACCOUNT);
  if (S1(SYS_chdir, directory) < 0) leave(BAD_DIRECTORY);
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
