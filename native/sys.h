/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of Linux that the shim needs, by number, for x86-64 and aarch64, without any C library.
   Rule: a call returns what the kernel returns: a value, or minus an errno. Source: syscalls(2), the kernel's uapi headers. */

#ifndef HOLDFAST_SYS_H
#define HOLDFAST_SYS_H

typedef unsigned int u32;
typedef unsigned long u64;

#if defined(__x86_64__)
enum {
  SYS_read = 0, SYS_write = 1, SYS_close = 3, SYS_mmap = 9, SYS_munmap = 11, SYS_rt_sigaction = 13, SYS_rt_sigprocmask = 14,
  SYS_getpid = 39, SYS_clone = 56, SYS_fcntl = 72, SYS_execve = 59, SYS_wait4 = 61, SYS_kill = 62, SYS_fsync = 74,
  SYS_fdatasync = 75, SYS_ftruncate = 77, SYS_chdir = 80, SYS_fchmod = 91, SYS_umask = 95, SYS_getuid = 102, SYS_getegid = 108,
  SYS_setpgid = 109, SYS_getppid = 110, SYS_setsid = 112, SYS_setresuid = 117, SYS_capset = 126, SYS_fstatfs = 138,
  SYS_prctl = 157, SYS_getdents64 = 217, SYS_clock_gettime = 228, SYS_exit_group = 231, SYS_waitid = 247, SYS_openat = 257,
  SYS_mkdirat = 258, SYS_unlinkat = 263, SYS_ppoll = 271, SYS_fallocate = 285, SYS_signalfd4 = 289, SYS_dup3 = 292, SYS_pipe2 = 293,
  SYS_prlimit64 = 302, SYS_renameat2 = 316, SYS_statx = 332
};
enum { O_DIRECTORY = 0200000, O_NOFOLLOW = 0400000 };

static inline long sys(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

__asm__(".text\n.globl _start\n_start:\n  xor %ebp,%ebp\n  mov %rsp,%rdi\n  and $-16,%rsp\n  call shim_main\n  hlt\n");

#elif defined(__aarch64__)
enum {
  SYS_dup3 = 24, SYS_fcntl = 25, SYS_mkdirat = 34, SYS_unlinkat = 35, SYS_fstatfs = 44, SYS_ftruncate = 46, SYS_fallocate = 47,
  SYS_chdir = 49, SYS_fchmod = 52, SYS_openat = 56, SYS_close = 57, SYS_pipe2 = 59, SYS_getdents64 = 61, SYS_read = 63, SYS_write = 64,
  SYS_ppoll = 73, SYS_signalfd4 = 74, SYS_fsync = 82, SYS_fdatasync = 83, SYS_capset = 91, SYS_exit_group = 94, SYS_waitid = 95,
  SYS_clock_gettime = 113, SYS_kill = 129, SYS_rt_sigaction = 134, SYS_rt_sigprocmask = 135, SYS_setresuid = 147, SYS_setpgid = 154,
  SYS_setsid = 157, SYS_umask = 166, SYS_prctl = 167, SYS_getpid = 172, SYS_getppid = 173, SYS_getuid = 174, SYS_getegid = 177,
  SYS_munmap = 215, SYS_clone = 220, SYS_execve = 221, SYS_mmap = 222, SYS_wait4 = 260, SYS_prlimit64 = 261, SYS_renameat2 = 276,
  SYS_statx = 291
};
enum { O_DIRECTORY = 040000, O_NOFOLLOW = 0100000 };

static inline long sys(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}

__asm__(".text\n.globl _start\n_start:\n  mov x29,#0\n  mov x30,#0\n  mov x0,sp\n  bl shim_main\n  brk #0\n");
#else
#error "only x86-64 and aarch64"
#endif

enum { SYS_pidfd_open = 434, SYS_clone3 = 435, SYS_close_range = 436 };
static const unsigned long CLONE_INTO_CGROUP = 0x200000000UL;

#define S0(n) sys(n, 0, 0, 0, 0, 0, 0)
#define S1(n, a) sys(n, (long)(a), 0, 0, 0, 0, 0)
#define S2(n, a, b) sys(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define S3(n, a, b, c) sys(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define S4(n, a, b, c, d) sys(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define S5(n, a, b, c, d, e) sys(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

enum {
  O_WRONLY = 1, O_RDONLY = 0, O_CREAT = 0100, O_EXCL = 0200, O_TRUNC = 01000, O_APPEND = 02000, O_NONBLOCK = 04000,
  O_CLOEXEC = 02000000, AT_FDCWD = -100, AT_EMPTY_PATH = 0x1000,
  EPERM = 1, ENOENT = 2, EINTR = 4, ECHILD = 10, EACCES = 13, EEXIST = 17, ENOTDIR = 20, EINVAL = 22, ENOSPC = 28, EOPNOTSUPP = 95,
  SIGKILL = 9, SIGUSR1 = 10, SIGTERM = 15, SIGCHLD = 17, SIGCONT = 18, SIGXCPU = 24,
  SIGXFSZ = 25, F_SETFL = 4, F_SETPIPE_SZ = 1031, CLOCK_REALTIME = 0, CLOCK_BOOTTIME = 7,
  PR_SET_PDEATHSIG = 1, PR_SET_DUMPABLE = 4, PR_SET_NAME = 15, PR_SET_CHILD_SUBREAPER = 36, PR_SET_NO_NEW_PRIVS = 38,
  PR_CAP_AMBIENT = 47, PR_CAP_AMBIENT_CLEAR_ALL = 4, CAPABILITY_VERSION_3 = 0x20080522,
  RLIMIT_CPU = 0, RLIMIT_FSIZE = 1, RLIMIT_NOFILE = 7, RLIMIT_AS = 9,
  P_ALL = 0, WNOHANG = 1, WEXITED = 4, WNOWAIT = 0x01000000, WALL = 0x40000000, POLLIN = 1
};

struct timespec { long seconds, nanoseconds; };
struct pollfd { int fd; short events, revents; };
struct rlimit { u64 now, most; };

/* Restarts a call that a signal interrupted: all signals are blocked here, but a stop and continue interrupts too. */
#define AGAIN(result, call) do (result) = (call); while ((result) == -EINTR)

#endif
