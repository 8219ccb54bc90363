#include "sandbox/seccomp_policy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <memory>

#include "assay/error.h"
#include "util/fd.h"

namespace assay::sandbox {
namespace {

using Context = std::unique_ptr<void, decltype([](void* c) { seccomp_release(c); })>;

void add(const Context& filter, std::uint32_t action, int number,
         std::initializer_list<scmp_arg_cmp> conditions = {}) {
  const int rc =
      seccomp_rule_add_array(filter.get(), action, number, static_cast<unsigned>(conditions.size()),
                             std::data(conditions));
  if (rc != 0 && rc != -EACCES)
    throw Error(fmt::format("seccomp rule for system call {} failed ({})", number, rc));
}

void add(const Context& filter, std::uint32_t action, const char* name,
         std::initializer_list<scmp_arg_cmp> conditions = {}) {
  const int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return;  // unknown to this libseccomp: the default action applies
  add(filter, action, number, conditions);
}

void add_all(const Context& filter, std::uint32_t action,
             std::initializer_list<const char*> names) {
  for (const char* name : names) add(filter, action, name);
}

// The flags of pthread_create in glibc and in musl. Linux ignores the one that musl adds.
constexpr std::uint64_t kThreadFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                       CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                       CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
constexpr std::uint64_t kThreadFlagsOfMusl = kThreadFlags | CLONE_DETACHED;

// For arguments that the kernel declares as int: it reads the lower half of the register and
// ignores the upper one.
scmp_arg_cmp int_is(unsigned argument, std::uint32_t value) {
  return SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, 0xffffffffu, value);
}

// raise() and abort() signal the worker itself, which is pid 2 in its namespace. Without a pid
// namespace its id is not known here, and it must not be able to signal others. Only the harness
// may stop or continue the worker: a thread that sent SIGCONT could undo a stop.
void add_signals(const Context& filter, Tier tier) {
  if (tier != Tier::namespaces) return add(filter, SCMP_ACT_ERRNO(EPERM), "tgkill");
  for (int signal = 0; signal < NSIG; ++signal) {
    const bool stops_or_continues = signal == SIGCONT || signal == SIGSTOP || signal == SIGTSTP ||
                                    signal == SIGTTIN || signal == SIGTTOU;
    add(filter, stops_or_continues ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW, "tgkill",
        {SCMP_A0(SCMP_CMP_EQ, 2), int_is(2, static_cast<std::uint32_t>(signal))});
  }
}

// A handler of SIGTRAP sees every instruction of what it steps through. Tests that an answer brings
// could tell implementations apart by that, and not by their results.
void add_handlers(const Context& filter) {
  for (int signal = 0; signal < NSIG; ++signal) {
    add(filter, signal == SIGTRAP ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW, "rt_sigaction",
        {int_is(0, static_cast<std::uint32_t>(signal))});
  }
}

// Refuses memory that the kernel's account of a process would miss, as a kernel without the feature
// would: huge pages from a pool, pages sent to swap, pages merged with others' or cut out of shared
// memory, pages replaced by guards. What is allowed and takes pages away, worker/seal.cpp watches.
void add_memory(const Context& filter) {
  constexpr std::uint64_t kHuge = MAP_HUGETLB;
  add(filter, SCMP_ACT_ALLOW, "mmap", {SCMP_A3(SCMP_CMP_MASKED_EQ, kHuge, 0)});
  add(filter, SCMP_ACT_ERRNO(EPERM), "mmap", {SCMP_A3(SCMP_CMP_MASKED_EQ, kHuge, kHuge)});
  constexpr std::uint32_t kPopulateRead = 22, kPopulateWrite = 23, kCollapse = 25;
  for (const std::uint32_t advice :
       {std::uint32_t{MADV_NORMAL}, std::uint32_t{MADV_RANDOM}, std::uint32_t{MADV_SEQUENTIAL},
        std::uint32_t{MADV_WILLNEED}, std::uint32_t{MADV_DONTNEED}, std::uint32_t{MADV_FREE},
        std::uint32_t{MADV_HUGEPAGE}, std::uint32_t{MADV_NOHUGEPAGE}, std::uint32_t{MADV_DONTDUMP},
        std::uint32_t{MADV_DODUMP}, kPopulateRead, kPopulateWrite, kCollapse}) {
    add(filter, SCMP_ACT_ALLOW, "madvise", {int_is(2, advice)});
  }
  constexpr std::uint32_t kRefused[] = {
      MADV_REMOVE,     MADV_DONTFORK,           MADV_DOFORK,
      MADV_MERGEABLE,  MADV_UNMERGEABLE,        MADV_WIPEONFORK,
      MADV_KEEPONFORK, 20 /* COLD */,           21 /* PAGEOUT */,
      MADV_HWPOISON,   102 /* GUARD_INSTALL */, 103 /* GUARD_REMOVE */};
  for (const std::uint32_t advice : kRefused) {
    add(filter, SCMP_ACT_ERRNO(EINVAL), "madvise", {int_is(2, advice)});
  }
}

// The base of a thread's own data, and no more: other requests take memory that the kernel's account
// of a process misses, or unmap it unseen. Libraries try some when they start.
void add_architecture(const Context& filter) {
  constexpr std::uint32_t kSetGs = 0x1001, kSetFs = 0x1002, kGetFs = 0x1003, kGetGs = 0x1004;
  for (const std::uint32_t request : {kSetGs, kSetFs, kGetFs, kGetGs})
    add(filter, SCMP_ACT_ALLOW, "arch_prctl", {int_is(0, request)});
  constexpr std::uint32_t kFaultingCpuid = 0x1011, kStateComponents = 0x1021, kVdso = 0x2001,
                          kEnforcement = 0x3001, kMaskedAddresses = 0x4001, kShadowStack = 0x5001;
  for (const std::uint32_t first :
       {kFaultingCpuid, kStateComponents, kVdso, kEnforcement, kMaskedAddresses, kShadowStack}) {
    for (std::uint32_t request = first; request < first + 8; ++request)
      add(filter, SCMP_ACT_ERRNO(EINVAL), "arch_prctl", {int_is(0, request)});
  }
}

Context worker_filter(Tier tier) {
  Context filter(seccomp_init(SCMP_ACT_KILL_PROCESS));
  // A name a line would be four pages.
  // clang-format off
  add_all(filter, SCMP_ACT_ALLOW,
          {"read", "write", "readv", "writev", "pread64", "lseek", "close", "munmap",
           "mprotect", "mremap", "brk", "futex", "futex_waitv",
           "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait",
           "sigaltstack", "restart_syscall", "exit", "exit_group", "clock_gettime",
           "clock_getres", "clock_nanosleep", "gettimeofday", "time", "nanosleep", "sched_yield",
           "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_max",
           "sched_get_priority_min", "getcpu", "getpid", "gettid", "getppid", "getuid", "geteuid",
           "getgid", "getegid", "getrandom", "set_robust_list", "get_robust_list",
           "set_tid_address", "rseq", "membarrier", "openat", "open", "newfstatat",
           "fstat", "stat", "lstat", "statx", "access", "faccessat", "faccessat2", "readlink",
           "readlinkat", "getcwd", "getdents64", "uname", "sysinfo", "getrusage", "times", "poll",
           "ppoll", "select", "pselect6", "pause"});
  // clang-format on
  // Only threads as pthread_create makes them: no processes, no namespaces, and no CLONE_VFORK,
  // which would let the parent wait in the kernel where no signal stops it.
  for (const std::uint64_t flags : {kThreadFlags, kThreadFlagsOfMusl}) {
    add(filter, SCMP_ACT_ALLOW, "clone", {SCMP_A0(SCMP_CMP_EQ, flags)});
  }
  add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3");  // glibc falls back to clone
  add_signals(filter, tier);
  add_handlers(filter);
  add_memory(filter);
  add_architecture(filter);
  // The worker installs filters of its own before it loads a submission (worker/seal.h) and passes
  // the listener of one to the harness by sendmsg. Its last filter refuses both calls from then on.
  add(filter, SCMP_ACT_ALLOW, "sendmsg");
  for (const std::uint64_t flags : {std::uint64_t{0}, SECCOMP_FILTER_FLAG_NEW_LISTENER}) {
    add(filter, SCMP_ACT_ALLOW, "seccomp",
        {SCMP_A0(SCMP_CMP_EQ, SECCOMP_SET_MODE_FILTER), SCMP_A1(SCMP_CMP_EQ, flags)});
  }
  add(filter, SCMP_ACT_ALLOW, "prlimit64", {SCMP_A2(SCMP_CMP_EQ, 0)});
  add(filter, SCMP_ACT_ERRNO(EPERM), "prlimit64", {SCMP_A2(SCMP_CMP_NE, 0)});
  add(filter, SCMP_ACT_ALLOW, "getrlimit");
  // The launcher executes the worker image by a descriptor that exec closes.
  add(filter, SCMP_ACT_ALLOW, "execveat",
      {SCMP_A0(SCMP_CMP_EQ, kExecDescriptor), SCMP_A4(SCMP_CMP_EQ, AT_EMPTY_PATH)});
  // Harmless requests that runtimes make and can live without.
  // clang-format off
  add_all(filter, SCMP_ACT_ERRNO(EPERM),
          {"sched_setaffinity",  // the cores are those that the harness gave it
           "sched_setscheduler", "sched_setparam", "setpriority",
           "getpriority", "mbind", "set_mempolicy", "get_mempolicy", "mlock", "mlock2", "mlockall",
           "munlock", "munlockall", "fcntl", "memfd_create", "ioctl", "setrlimit", "prctl",
           "alarm", "setitimer", "timer_create", "pipe", "pipe2", "eventfd2",
           "ftruncate", "fallocate", "truncate", "fadvise64", "mincore", "msync", "statfs", "fstatfs",
           "mkdir", "unlink", "unlinkat", "rename", "dup", "dup2", "dup3", "sched_getattr"});
  // clang-format on
  return filter;
}

Context compiler_filter() {
  Context filter(seccomp_init(SCMP_ACT_ALLOW));
  // clang-format off
  add_all(filter, SCMP_ACT_KILL_PROCESS,
          {"socket", "socketpair", "connect", "bind", "listen", "ptrace", "process_vm_readv",
           "process_vm_writev", "pidfd_getfd", "mount", "umount2", "pivot_root", "chroot",
           "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "mount_setattr", "unshare",
           "setns", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "keyctl", "add_key",
           "request_key", "kexec_load", "kexec_file_load", "init_module", "finit_module",
           "delete_module", "reboot", "swapon", "swapoff", "acct", "quotactl", "settimeofday",
           "clock_settime", "adjtimex", "clock_adjtime", "iopl", "ioperm", "mknod", "mknodat",
           "name_to_handle_at", "open_by_handle_at", "fanotify_init", "shmget", "msgget", "semget"});
  // clang-format on
  add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3");
  for (const std::uint64_t flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                   CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET}) {
    add(filter, SCMP_ACT_KILL_PROCESS, "clone", {SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)});
  }
  return filter;
}

// The driver loads its modules and talks to the kernel's through device files. It has been seen to
// need threads, whose names it writes to /proc, memfd_create, an abstract socket at which it
// listens, and the NUMA policy. What is refused fails with an error that the driver could meet in a
// container, too; it does without a tool that it cannot start.
Context driver_filter() {
  Context filter(seccomp_init(SCMP_ACT_ALLOW));
  // No processes and no programs but the image that the launcher executes. Threads are permitted;
  // glibc falls back from clone3 to clone.
  add_all(filter, SCMP_ACT_ERRNO(EPERM), {"fork", "vfork", "execve"});
  add(filter, SCMP_ACT_ERRNO(EPERM), "clone", {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)});
  add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3");
  add(filter, SCMP_ACT_ERRNO(EPERM), "execveat", {SCMP_A0(SCMP_CMP_NE, kExecDescriptor)});
  add(filter, SCMP_ACT_ERRNO(EPERM), "execveat", {SCMP_A4(SCMP_CMP_NE, AT_EMPTY_PATH)});
  // No network. Unix sockets may be made, but neither connected to a service, which Landlock would
  // not prevent, nor accept others. Datagram sockets are refused: they need no connection.
  add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket", {SCMP_A0(SCMP_CMP_NE, AF_UNIX)});
  add(filter, SCMP_ACT_ERRNO(ECONNREFUSED), "connect");
  add_all(filter, SCMP_ACT_ERRNO(EPERM), {"accept", "accept4"});
  constexpr std::uint64_t kType = 0xf;
  for (const char* name : {"socket", "socketpair"}) {
    for (const std::uint64_t type : {std::uint64_t{SOCK_DGRAM}, std::uint64_t{SOCK_RAW}}) {
      add(filter, SCMP_ACT_ERRNO(EPERM), name, {SCMP_A1(SCMP_CMP_MASKED_EQ, kType, type)});
    }
  }
  // Input pushed to a terminal would be read by another program.
  for (const std::uint32_t request : {std::uint32_t{TIOCSTI}, std::uint32_t{TIOCLINUX}}) {
    add(filter, SCMP_ACT_ERRNO(EPERM), "ioctl", {int_is(1, request)});
  }
  // clang-format off
  add_all(filter, SCMP_ACT_ERRNO(EPERM),
          {// other processes: their memory, descriptors, threads
           "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
           "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "tkill", "kcmp",
           "migrate_pages", "shmget", "shmat", "shmctl", "msgget", "semget", "mq_open",
           // other identities, and keys that the kernel keeps for this one
           "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid",
           "setfsgid", "setgroups", "capset", "keyctl", "add_key", "request_key",
           // what becomes of files without opening them, of which Landlock says nothing
           "chmod", "fchmodat", "chown", "lchown", "fchownat", "utime", "utimes",
           "futimesat", "utimensat", "truncate", "setxattr", "lsetxattr",
           "removexattr", "lremovexattr", "mknod", "mknodat",
           "name_to_handle_at", "open_by_handle_at",
           // the tree of files, and namespaces
           "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount",
           "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns",
           // parts of the kernel that are known for their faults
           "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
           "io_uring_register", "fanotify_init", "lookup_dcookie",
           // the machine as a whole
           "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
           "reboot", "swapon", "swapoff", "acct", "quotactl", "settimeofday",
           "clock_settime", "adjtimex", "clock_adjtime", "iopl", "ioperm", "sethostname",
           "setdomainname", "syslog", "vhangup", "nfsservctl"});
  // clang-format on
  // More of the same, by number, which is the same on every architecture: libseccomp may be too old
  // to know the names.
  constexpr int kQuotactlFd = 443, kProcessMrelease = 448, kFchmodat2 = 452, kSetxattrat = 463,
                kRemovexattrat = 466, kOpenTreeAttr = 467, kFileSetattr = 469;
  for (const int number : {kQuotactlFd, kProcessMrelease, kFchmodat2, kSetxattrat, kRemovexattrat,
                           kOpenTreeAttr, kFileSetattr}) {
    add(filter, SCMP_ACT_ERRNO(EPERM), number);
  }
  return filter;
}

std::vector<sock_filter> compile(const Context& filter) {
  seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // binary search over numbers
  const Fd memory(::memfd_create("seccomp", MFD_CLOEXEC));
  if (!memory || seccomp_export_bpf(filter.get(), memory.get()) != 0) {
    throw Error("libseccomp cannot export its filter");
  }
  const off_t bytes = ::lseek(memory.get(), 0, SEEK_END);
  std::vector<sock_filter> program(static_cast<std::size_t>(bytes) / sizeof(sock_filter));
  if (::pread(memory.get(), program.data(), static_cast<std::size_t>(bytes), 0) != bytes) {
    throw Error("libseccomp's filter cannot be read back");
  }
  return program;
}

}  // namespace

const std::vector<sock_filter>& seccomp_program(Policy policy, Tier tier) {
  if (policy == Policy::compiler) {
    static const auto program = compile(compiler_filter());
    return program;
  }
  if (policy == Policy::driver) {
    static const auto program = compile(driver_filter());
    return program;
  }
  if (tier == Tier::namespaces) {
    static const auto program = compile(worker_filter(Tier::namespaces));
    return program;
  }
  static const auto program = compile(worker_filter(Tier::landlock));
  return program;
}

std::array<sock_filter, 13> own_process_filter(pid_t own) {
  constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS, kIs = BPF_JMP | BPF_JEQ | BPF_K,
                          kReturn = BPF_RET | BPF_K;
  // The lower half of the first argument, which is all that the kernel reads.
  constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr), kId = offsetof(seccomp_data, args);
  const auto id = static_cast<std::uint32_t>(own);
  // Jumps (if equal, if not) count from the next instruction.
  return {{
      {kLoad, 0, 0, kNumber},                      //  0
      {kIs, 4, 0, SYS_kill},                       //  1: to 6
      {kIs, 3, 0, SYS_tgkill},                     //  2: to 6
      {kIs, 2, 0, SYS_rt_sigqueueinfo},            //  3: to 6
      {kIs, 1, 0, SYS_rt_tgsigqueueinfo},          //  4: to 6
      {kIs, 2, 5, SYS_prlimit64},                  //  5: to 8 or 11
      {kLoad, 0, 0, kId},                          //  6, signals
      {kIs, 3, 4, id},                             //  7: to 11 or 12
      {kLoad, 0, 0, kId},                          //  8, limits
      {kIs, 1, 0, 0},                              //  9: to 11; 0 is the caller
      {kIs, 0, 1, id},                             // 10: to 11 or 12
      {kReturn, 0, 0, SECCOMP_RET_ALLOW},          // 11
      {kReturn, 0, 0, SECCOMP_RET_ERRNO | EPERM},  // 12
  }};
}

}  // namespace assay::sandbox
