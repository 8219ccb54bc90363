// The filters as the kernel applies them, each in its own child process, without a sandbox around
// it.
#include "sandbox/seccomp_policy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace assay::sandbox {
namespace {

constexpr int kKilled = -1, kDone = 0;

// kDone if the call succeeds under the filter, kKilled if the filter killed the process, otherwise
// the call's errno.
template <class Call>
int outcome(Policy policy, Tier tier, Call call) {
  const auto& filter = seccomp_program(policy, tier);
  const pid_t child = ::fork();
  if (child == 0) {
    const sock_fprog program{static_cast<unsigned short>(filter.size()),
                             const_cast<sock_filter*>(filter.data())};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      ::_exit(250);
    ::_exit(call() < 0 ? errno : kDone);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGSYS);
    return kKilled;
  }
  EXPECT_NE(WEXITSTATUS(status), 250) << "the filter was not installed";
  return WEXITSTATUS(status);
}

template <class Call>
int in_worker(Call call) {
  return outcome(Policy::worker, Tier::namespaces, call);
}

long a_process() { return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
long a_socket() { return ::syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0); }
long some_memory(int flags) {
  return ::syscall(SYS_mmap, nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

TEST(SeccompPolicy, AWorkerTakesNoMemoryThroughTheArchitecture) {
  const auto request = [](int code) {
    return in_worker([=] { return ::syscall(SYS_arch_prctl, code, 0); });
  };
  unsigned long base = 0;
  EXPECT_EQ(in_worker([&] { return ::syscall(SYS_arch_prctl, 0x1003, &base); }), kDone);
  for (const int refused : {0x1023 /* state of tiles */, 0x3001, 0x5001 /* shadow stack */})
    EXPECT_EQ(request(refused), EINVAL) << refused;
  EXPECT_EQ(request(0x7777), kKilled);
}

TEST(SeccompPolicy, AWorkerMayComputeAndRead) {
  EXPECT_EQ(in_worker([] { return ::syscall(SYS_getpid); }), kDone);
  EXPECT_EQ(in_worker([] { return some_memory(0); }), kDone);
  EXPECT_EQ(in_worker([] { return ::syscall(SYS_openat, AT_FDCWD, "/dev/null", 0, 0); }), kDone);
}

TEST(SeccompPolicy, AWorkerThatStartsAProcessOrOpensASocketIsKilled) {
  EXPECT_EQ(in_worker(&a_process), kKilled);
  EXPECT_EQ(in_worker(&a_socket), kKilled);
  EXPECT_EQ(in_worker([] { return ::syscall(SYS_ptrace, 0, 0, 0, 0); }), kKilled);
  EXPECT_EQ(in_worker([] { return ::syscall(SYS_kill, ::getppid(), 0); }), kKilled);
}

TEST(SeccompPolicy, AWorkerMayHandleSignalsButNotSingleSteps) {
  const auto handles = [](long signal) {
    return in_worker([=] { return ::syscall(SYS_rt_sigaction, signal, nullptr, nullptr, 8); });
  };
  EXPECT_EQ(handles(SIGSEGV), kDone);
  EXPECT_EQ(handles(NSIG - 1), kDone);
  EXPECT_EQ(handles(SIGTRAP), EPERM);
  EXPECT_EQ(handles((1L << 32) | SIGTRAP), EPERM) << "the kernel ignores the upper half";
}

// Otherwise the exec descriptor would be a way around the filter.
TEST(SeccompPolicy, AWorkerExecutesNothingElse) {
  EXPECT_EQ(in_worker([] { return ::syscall(SYS_execve, "/bin/true", nullptr, nullptr); }),
            kKilled);
  EXPECT_EQ(in_worker([] {
              return ::syscall(SYS_execveat, kExecDescriptor - 1, "", nullptr, nullptr,
                               AT_EMPTY_PATH);
            }),
            kKilled);
  EXPECT_EQ(in_worker([] {
              return ::syscall(SYS_execveat, kExecDescriptor, "", nullptr, nullptr, AT_EMPTY_PATH);
            }),
            EBADF)
      << "there is nothing behind it";
}

TEST(SeccompPolicy, WhatRuntimesCanLiveWithoutIsRefused) {
  EXPECT_EQ(in_worker([] { return ::syscall(SYS_clone3, nullptr, 0); }), ENOSYS);
  EXPECT_EQ(in_worker([] { return some_memory(MAP_HUGETLB); }), EPERM);
  constexpr int kInstallGuards = 102;
  EXPECT_EQ(in_worker([] { return ::syscall(SYS_madvise, nullptr, 0, MADV_MERGEABLE); }), EINVAL);
  EXPECT_EQ(in_worker([] { return ::syscall(SYS_madvise, nullptr, 0, kInstallGuards); }), EINVAL);
  EXPECT_EQ(in_worker([] {
              const rlimit more{64, 64};
              return ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &more, nullptr);
            }),
            EPERM);
  EXPECT_EQ(in_worker([] {
              rlimit now{};
              return ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &now);
            }),
            kDone);
}

// In a pid namespace the worker is process 2; elsewhere its id is not known in advance.
TEST(SeccompPolicy, SignalsGoToTheWorkerItselfOrToNobody) {
  const auto to = [](pid_t process) { return ::syscall(SYS_tgkill, process, 1, 0); };
  EXPECT_EQ(in_worker([&] { return to(1); }), kKilled);
  EXPECT_EQ(in_worker([&] { return ::syscall(SYS_tgkill, 2, 2, SIGCONT); }), EPERM);
  EXPECT_EQ(outcome(Policy::worker, Tier::landlock, [&] { return to(1); }), EPERM);
}

TEST(SeccompPolicy, ACompilerMayStartProcessesButNotReachOut) {
  const auto in_compiler = [](auto call) {
    return outcome(Policy::compiler, Tier::namespaces, call);
  };
  EXPECT_EQ(in_compiler([] {
              const long child = a_process();
              if (child == 0) ::_exit(0);
              return child;
            }),
            kDone);
  EXPECT_EQ(in_compiler(&a_socket), kKilled);
  EXPECT_EQ(in_compiler([] { return ::syscall(SYS_unshare, CLONE_NEWUSER); }), kKilled);
  EXPECT_EQ(in_compiler([] { return ::syscall(SYS_clone, SIGCHLD | CLONE_NEWUSER, 0, 0, 0, 0); }),
            kKilled);
}

TEST(SeccompPolicy, AFilterIsBuiltOnce) {
  EXPECT_EQ(&seccomp_program(Policy::worker, Tier::namespaces),
            &seccomp_program(Policy::worker, Tier::namespaces));
  EXPECT_NE(&seccomp_program(Policy::worker, Tier::namespaces),
            &seccomp_program(Policy::worker, Tier::landlock));
  EXPECT_FALSE(seccomp_program(Policy::compiler, Tier::landlock).empty());
}

template <class Call>
int in_driver(Call call) {
  return outcome(Policy::driver, Tier::landlock, call);
}

// tests/processes/gpu_machine_test.cpp tries much more, in the full sandbox.
TEST(SeccompPolicy, ADriverIsRefusedWithErrors) {
  EXPECT_EQ(in_driver([] { return ::syscall(SYS_getpid); }), kDone);
  EXPECT_EQ(in_driver(a_process), EPERM);
  EXPECT_EQ(in_driver(a_socket), kDone);
  EXPECT_EQ(in_driver([] { return ::syscall(SYS_socket, AF_INET, SOCK_STREAM, 0); }), EAFNOSUPPORT);
  EXPECT_EQ(in_driver([] { return ::chmod("/", 0755); }), EPERM);
  EXPECT_EQ(in_driver([] { return ::syscall(SYS_execve, "/", nullptr, nullptr); }), EPERM);
  EXPECT_EQ(in_driver([] { return ::syscall(SYS_execveat, -1, "", nullptr, nullptr, 0); }), EPERM);
}

// fchmodat2, setxattrat, removexattrat, open_tree_attr.
TEST(SeccompPolicy, ADriverIsRefusedWhatIsNewerThanLibseccomp) {
  for (const long number : {452, 463, 466, 467})
    EXPECT_EQ(in_driver([&] { return ::syscall(number, -1, nullptr, 0, 0, 0); }), EPERM) << number;
}

TEST(SeccompPolicy, ADriversSignalsAndLimitsAreForItself) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto filter = own_process_filter(::getpid());
    const sock_fprog program{static_cast<unsigned short>(filter.size()),
                             const_cast<sock_filter*>(filter.data())};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      ::_exit(250);
    rlimit limit{};
    const auto limit_of = [&](pid_t id) {
      return ::syscall(SYS_prlimit64, id, RLIMIT_CORE, nullptr, &limit) == 0;
    };
    const pid_t own = ::getpid();
    const bool permitted =
        ::kill(own, 0) == 0 && ::raise(SIGURG) == 0 && limit_of(0) && limit_of(own);
    const bool refused = ::kill(parent, 0) != 0 && ::kill(0, 0) != 0 && ::kill(-own, 0) != 0 &&
                         ::syscall(SYS_tgkill, parent, parent, 0) != 0 && !limit_of(parent);
    ::_exit(!permitted ? 1 : !refused ? 2 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace assay::sandbox
