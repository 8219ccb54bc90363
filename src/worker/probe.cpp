#include "worker/probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace assay::worker {
namespace {

bool can_open(const char* path, int flags) { return ::open(path, flags, 0600) >= 0; }

bool can_send(std::uint64_t signal) {
  return ::syscall(SYS_tgkill, ::getpid(), ::gettid(), signal) == 0;
}

struct Action {
  const char* name;
  bool (*succeeds)(const char* target);
};

constexpr Action kActions[] = {
    {"none", [](const char*) { return false; }},
    {"read", [](const char* path) { return can_open(path, O_RDONLY); }},
    {"list", [](const char* path) { return can_open(path, O_RDONLY | O_DIRECTORY); }},
    {"write", [](const char* path) { return can_open(path, O_WRONLY | O_CREAT); }},
    {"load", [](const char* path) { return ::dlopen(path, RTLD_NOW | RTLD_LOCAL) != nullptr; }},
    {"environment", [](const char*) { return ::getenv("PATH") != nullptr; }},
    {"inherited_fd",
     [](const char*) {
       struct stat s {};
       return ::fstat(9, &s) == 0;
     }},
    {"be_root", [](const char*) { return ::getuid() == 0; }},
    {"affinity",
     [](const char*) {
       cpu_set_t set;
       return ::sched_getaffinity(0, sizeof set, &set) == 0 &&
              ::sched_setaffinity(0, sizeof set, &set) == 0;
     }},
    {"continue_itself", [](const char*) { return can_send(SIGCONT); }},
    {"stop_itself",
     [](const char*) {
       return can_send(SIGTSTP) || can_send(SIGTTIN) || can_send(SIGTTOU) || can_send(SIGSTOP);
     }},
    // The kernel reads an int from the register: the bits above it must not deceive the filter.
    {"continue_by_a_long_number",
     [](const char*) { return can_send(SIGCONT | (std::uint64_t{1} << 32)); }},
    {"wait_on_shared",
     [](const char*) {
       int off = 0;
       return ::fcntl(1, F_SETFL, 0) == 0 || ::ioctl(1, FIONBIO, &off) == 0;
     }},
    {"huge_pages",
     [](const char*) {
       constexpr std::size_t kBytes = std::size_t{2} << 20;
       return ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) != MAP_FAILED ||
              errno != EPERM;
     }},
    {"shared_memory",
     [](const char*) {
       constexpr std::size_t kBytes = 4096;
       return ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) !=
              MAP_FAILED;
     }},
    {"more_filters",
     [](const char*) {
       return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, nullptr) == 0 || errno != EPERM;
     }},
    // A thread whose parent waits in the kernel for its start and ignores signals. If it is
    // allowed, it has no stack, which kills the process.
    {"thread_as_by_vfork",
     [](const char*) {
       constexpr long kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                               CLONE_SYSVSEM | CLONE_VFORK;
       return ::syscall(SYS_clone, kFlags, 16, nullptr, nullptr, 0) >= 0;
     }},
    // Executes any program. If allowed, this process becomes it.
    {"execute",
     [](const char* path) {
       char name[] = "x";
       char* argv[] = {name, nullptr};
       const int fd = ::open(path, O_RDONLY);
       return fd >= 0 && ::syscall(SYS_execveat, fd, "", argv, argv + 1, AT_EMPTY_PATH) == 0;
     }},
    {"fork", [](const char*) { return ::fork() >= 0; }},
    {"socket", [](const char*) { return ::socket(AF_UNIX, SOCK_STREAM, 0) >= 0; }},
    {"signal_others", [](const char*) { return ::kill(-1, SIGTERM) == 0; }},
    {"trace",
     [](const char* pid) { return ::ptrace(PTRACE_SEIZE, std::atoi(pid), nullptr, nullptr) == 0; }},
};

}  // namespace

int probe(const char* action, const char* target) {
  for (const Action& a : kActions) {
    if (std::strcmp(a.name, action) == 0) return a.succeeds(target) ? 1 : 0;
  }
  return 64;
}

}  // namespace assay::worker
