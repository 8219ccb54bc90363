#include "sandbox/seccomp_policy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <memory>

#include "util/fd.h"
#include "util/files.h"

namespace assay::sandbox {
namespace {

using Context = std::unique_ptr<void, decltype([](void* c) { seccomp_release(c); })>;

void add(const Context& filter, std::uint32_t action, const char* name,
         std::initializer_list<scmp_arg_cmp> conditions = {}) {
  const int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return;  // unknown to this libseccomp: the default action applies
  const int rc =
      seccomp_rule_add_array(filter.get(), action, number, static_cast<unsigned>(conditions.size()),
                             std::data(conditions));
  if (rc != 0 && rc != -EACCES)
    throw Error(fmt::format("seccomp rule for {} failed ({})", name, rc));
}

void add_all(const Context& filter, std::uint32_t action,
             std::initializer_list<const char*> names) {
  for (const char* name : names) add(filter, action, name);
}

// What pthread_create asks for, in glibc and in musl, whose last flag Linux ignores.
constexpr std::uint64_t kThreadFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                       CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                       CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
constexpr std::uint64_t kThreadFlagsOfMusl = kThreadFlags | CLONE_DETACHED;

// An int of the kernel's: of the register it reads the lower half, whatever stands in the upper
// one.
scmp_arg_cmp int_is(unsigned argument, std::uint32_t value) {
  return SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, 0xffffffffu, value);
}

// raise() and abort() signal the own process, which is pid 2 in its namespace. Without a pid
// namespace the id is not known here, and signalling others must not be possible. A signal that
// stops or continues the process is the harness's alone: a thread that sent SIGCONTs could undo a
// stop.
void add_signals(const Context& filter, Tier tier) {
  if (tier != Tier::namespaces) return add(filter, SCMP_ACT_ERRNO(EPERM), "tgkill");
  for (int signal = 0; signal < NSIG; ++signal) {
    const bool stops_or_continues = signal == SIGCONT || signal == SIGSTOP || signal == SIGTSTP ||
                                    signal == SIGTTIN || signal == SIGTTOU;
    add(filter, stops_or_continues ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW, "tgkill",
        {SCMP_A0(SCMP_CMP_EQ, 2), int_is(2, static_cast<std::uint32_t>(signal))});
  }
}

// Memory that the kernel's account of a process would miss is refused as on a kernel that has none
// of it: huge pages of a pool, pages sent to swap, pages merged with others' or cut out of shared
// memory.
void add_memory(const Context& filter) {
  constexpr std::uint64_t kHuge = MAP_HUGETLB;
  add(filter, SCMP_ACT_ALLOW, "mmap", {SCMP_A3(SCMP_CMP_MASKED_EQ, kHuge, 0)});
  add(filter, SCMP_ACT_ERRNO(EPERM), "mmap", {SCMP_A3(SCMP_CMP_MASKED_EQ, kHuge, kHuge)});
  constexpr std::uint32_t kPopulateRead = 22, kPopulateWrite = 23, kCollapse = 25, kGuard = 102,
                          kUnguard = 103;
  for (const std::uint32_t advice :
       {std::uint32_t{MADV_NORMAL}, std::uint32_t{MADV_RANDOM}, std::uint32_t{MADV_SEQUENTIAL},
        std::uint32_t{MADV_WILLNEED}, std::uint32_t{MADV_DONTNEED}, std::uint32_t{MADV_FREE},
        std::uint32_t{MADV_HUGEPAGE}, std::uint32_t{MADV_NOHUGEPAGE}, std::uint32_t{MADV_DONTDUMP},
        std::uint32_t{MADV_DODUMP}, kPopulateRead, kPopulateWrite, kCollapse, kGuard, kUnguard}) {
    add(filter, SCMP_ACT_ALLOW, "madvise", {int_is(2, advice)});
  }
  constexpr std::uint32_t kRefused[] = {
      MADV_REMOVE,     MADV_DONTFORK,   MADV_DOFORK,   MADV_MERGEABLE,   MADV_UNMERGEABLE,
      MADV_WIPEONFORK, MADV_KEEPONFORK, 20 /* COLD */, 21 /* PAGEOUT */, MADV_HWPOISON};
  for (const std::uint32_t advice : kRefused) {
    add(filter, SCMP_ACT_ERRNO(EINVAL), "madvise", {int_is(2, advice)});
  }
}

Context worker_filter(Tier tier) {
  Context filter(seccomp_init(SCMP_ACT_KILL_PROCESS));
  // A name a line would be four pages.
  // clang-format off
  add_all(filter, SCMP_ACT_ALLOW,
          {"read", "write", "readv", "writev", "pread64", "lseek", "close", "munmap",
           "mprotect", "mremap", "brk", "futex", "futex_waitv", "rt_sigaction",
           "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait",
           "sigaltstack", "restart_syscall", "exit", "exit_group", "clock_gettime",
           "clock_getres", "clock_nanosleep", "gettimeofday", "time", "nanosleep", "sched_yield",
           "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_max",
           "sched_get_priority_min", "getcpu", "getpid", "gettid", "getppid", "getuid", "geteuid",
           "getgid", "getegid", "getrandom", "set_robust_list", "get_robust_list",
           "set_tid_address", "rseq", "arch_prctl", "membarrier", "openat", "open", "newfstatat",
           "fstat", "stat", "lstat", "statx", "access", "faccessat", "faccessat2", "readlink",
           "readlinkat", "getcwd", "getdents64", "uname", "sysinfo", "getrusage", "times", "poll",
           "ppoll", "select", "pselect6", "pause"});
  // clang-format on
  // Threads as pthread_create makes them, and nothing else: no processes, no namespaces, and no
  // thread whose start lets its parent wait in the kernel, as vfork's does, where no signal stops
  // it.
  for (const std::uint64_t flags : {kThreadFlags, kThreadFlagsOfMusl}) {
    add(filter, SCMP_ACT_ALLOW, "clone", {SCMP_A0(SCMP_CMP_EQ, flags)});
  }
  add(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3");  // glibc falls back to clone
  add_signals(filter, tier);
  add_memory(filter);
  // The worker's own filters, which it puts on before it loads a submission (worker/seal.h) and of
  // which the last refuses further ones.
  for (const std::uint64_t flags : {std::uint64_t{0}, SECCOMP_FILTER_FLAG_NEW_LISTENER}) {
    add(filter, SCMP_ACT_ALLOW, "seccomp",
        {SCMP_A0(SCMP_CMP_EQ, SECCOMP_SET_MODE_FILTER), SCMP_A1(SCMP_CMP_EQ, flags)});
  }
  add(filter, SCMP_ACT_ALLOW, "prlimit64", {SCMP_A2(SCMP_CMP_EQ, 0)});
  add(filter, SCMP_ACT_ERRNO(EPERM), "prlimit64", {SCMP_A2(SCMP_CMP_NE, 0)});
  add(filter, SCMP_ACT_ALLOW, "getrlimit");
  // The launcher's own exec of the worker image, by a descriptor of which none is left afterwards.
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
  if (tier == Tier::namespaces) {
    static const auto program = compile(worker_filter(Tier::namespaces));
    return program;
  }
  static const auto program = compile(worker_filter(Tier::landlock));
  return program;
}

}  // namespace assay::sandbox
