#include "sandbox/launch.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "sandbox/landlock.h"
#include "sandbox/seccomp_policy.h"

namespace assay::sandbox {
namespace {

[[noreturn]] void report_failure(const Launch& launch, Stage stage, int error) {
  const Report report{.stage = stage, .error = error};
  [[maybe_unused]] const auto n = ::write(launch.report, &report, sizeof report);
  ::_exit(127);
}

void require(const Launch& launch, Stage stage, bool ok) {
  if (!ok) report_failure(launch, stage, errno);
}

bool write_text(const char* path, std::string_view text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return ok;
}

bool make_user_namespace(const char* uid_map, const char* gid_map) {
  ::prctl(PR_SET_DUMPABLE, 1);  // else /proc/self belongs to root and the maps cannot be written
  return ::unshare(CLONE_NEWUSER) == 0 && write_text("/proc/self/setgroups", "deny") &&
         write_text("/proc/self/uid_map", uid_map) && write_text("/proc/self/gid_map", gid_map);
}

void make_namespaces(const Launch& launch) {
  if (!launch.root) {
    require(launch, Stage::user_namespace, make_user_namespace(launch.uid_map, launch.gid_map));
  }
  require(launch, Stage::namespaces,
          ::unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                    CLONE_NEWCGROUP) == 0);
}

bool set_attributes(int fd, const char* path, std::uint64_t attributes, unsigned flags) {
  mount_attr attr{};
  attr.attr_set = attributes;
  return ::mount_setattr(fd, path, flags, &attr, sizeof attr) == 0;
}

// Makes a tmpfs root that shows nothing but the mounts, each read-only unless it is writable.
void make_root(const Launch& launch) {
  require(launch, Stage::root, ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  // Trees are cloned before the staging folder hides anything.
  std::array<int, kMaxMounts> trees{};
  for (std::size_t i = 0; i < launch.mounts.size(); ++i) {
    trees[i] = ::open_tree(AT_FDCWD, launch.mounts[i].host,
                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    require(launch, Stage::mount, trees[i] >= 0);
    const std::uint64_t attributes =
        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (launch.mounts[i].writable ? 0 : MOUNT_ATTR_RDONLY);
    require(launch, Stage::mount,
            set_attributes(trees[i], "", attributes, AT_EMPTY_PATH | AT_RECURSIVE));
  }
  require(launch, Stage::root,
          ::mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755") == 0);
  require(launch, Stage::root, ::chdir("/tmp") == 0);
  for (const char* folder : launch.parents) {
    require(launch, Stage::root, ::mkdir(folder + 1, 0755) == 0 || errno == EEXIST);
  }
  for (std::size_t i = 0; i < launch.mounts.size(); ++i) {
    const char* inside = launch.mounts[i].inside + 1;
    if (launch.mounts[i].directory) {
      require(launch, Stage::mount, ::mkdir(inside, 0755) == 0 || errno == EEXIST);
    } else {
      const int fd = ::open(inside, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      require(launch, Stage::mount, fd >= 0);
      ::close(fd);
    }
    require(launch, Stage::mount,
            ::move_mount(trees[i], "", AT_FDCWD, inside, MOVE_MOUNT_F_EMPTY_PATH) == 0);
    ::close(trees[i]);
  }
  if (launch.tmp_bytes > 0) {
    require(launch, Stage::mount, ::mkdir("tmp", 0755) == 0 || errno == EEXIST);
    require(launch, Stage::mount,
            ::mount("tmpfs", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, launch.tmp_options) == 0);
  }
  require(launch, Stage::pivot, ::syscall(SYS_pivot_root, ".", ".") == 0);
  require(launch, Stage::pivot, ::umount2(".", MNT_DETACH) == 0);
  require(launch, Stage::pivot, ::chdir("/") == 0);
  require(launch, Stage::pivot, set_attributes(AT_FDCWD, "/", MOUNT_ATTR_RDONLY, 0));
}

void set_limit(const Launch& launch, __rlimit_resource resource, std::uint64_t value) {
  const rlimit limit{value, value};
  require(launch, Stage::limits, ::setrlimit(resource, &limit) == 0);
}

std::uint64_t half_of_the_users_tasks() {
  constexpr rlim_t kMost = 32768;  // pids, as kernels number them by default
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0) return kMost / 2;
  return std::min(limit.rlim_cur, kMost) / 2;
}

void set_limits(const Launch& launch) {
  const Limits& limits = launch.limits;
  // A limit of 0 is ignored where core_pattern pipes to a program; with a limit of 1 the kernel
  // writes no dump at all. A hard limit of 0 cannot be raised.
  rlimit core{};
  const bool none = ::getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0;
  set_limit(launch, RLIMIT_CORE, none ? 0 : 1);
  // The driver of a GPU locks the memory that the GPU accesses; it keeps the harness's limit.
  if (launch.policy != Policy::driver) set_limit(launch, RLIMIT_MEMLOCK, 0);
  set_limit(launch, RLIMIT_MSGQUEUE, 0);
  // Signals that a program leaves waiting count for its user, who may be the harness's: its timers
  // need some too.
  set_limit(launch, RLIMIT_SIGPENDING, 256);
  set_limit(launch, RLIMIT_FSIZE, limits.file_size);
  set_limit(launch, RLIMIT_NOFILE, limits.open_files);
  set_limit(launch, RLIMIT_STACK, limits.stack);
  if (limits.address_space > 0) set_limit(launch, RLIMIT_AS, limits.address_space);
  if (limits.data > 0) set_limit(launch, RLIMIT_DATA, limits.data);
  if (limits.cpu_seconds > 0) set_limit(launch, RLIMIT_CPU, limits.cpu_seconds);
  // The limit counts all tasks of a user. If the program does not run as a user of its own, unrelated
  // ones would exhaust it; it leaves half of what the user may have, because threads need no address
  // space of their own.
  const bool own_user = launch.root || launch.tier == Tier::namespaces;
  if (limits.processes > 0)
    set_limit(launch, RLIMIT_NPROC, own_user ? limits.processes : half_of_the_users_tasks());
}

void drop_privileges(const Launch& launch) {
  if (launch.root && launch.tier != Tier::none) {
    // System calls, because libc's functions take a lock to inform all threads. A thread of the
    // harness may have held it at the fork, and that thread does not exist here.
    const uid_t id = launch.uid;
    require(launch, Stage::privileges,
            ::syscall(SYS_setgroups, 0, nullptr) == 0 &&
                ::syscall(SYS_setresgid, id, id, id) == 0 &&
                ::syscall(SYS_setresuid, id, id, id) == 0);
  }
  require(launch, Stage::privileges, ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

// In tiers that share the host's files the program must not learn the harness's working folder.
void leave_working_folder(const Launch& launch) {
  if (shares_files(launch.tier)) require(launch, Stage::privileges, ::chdir("/") == 0);
}

// Descriptors that exec closes; -1: none.
struct Placed {
  int report = -1, exec = -1, ruleset = -1;
};

// Moves the program's descriptors to 0, 1, ... and closes all others. The report and the ruleset
// lie just above them, the executable at kExecDescriptor, which the filter knows.
Placed place_descriptors(const Launch& launch) {
  constexpr int kHigh = 200;
  std::array<int, kMaxDescriptors> lifted{};
  for (std::size_t i = 0; i < launch.fds.size(); ++i) {
    lifted[i] = ::fcntl(launch.fds[i], F_DUPFD_CLOEXEC, kHigh);
    require(launch, Stage::descriptors, lifted[i] >= 0);
  }
  Placed placed;
  placed.report = ::fcntl(launch.report, F_DUPFD_CLOEXEC, kHigh);
  if (launch.exec >= 0) placed.exec = ::fcntl(launch.exec, F_DUPFD_CLOEXEC, kHigh);
  if (launch.ruleset >= 0) placed.ruleset = ::fcntl(launch.ruleset, F_DUPFD_CLOEXEC, kHigh);
  int next = 0;
  for (std::size_t i = 0; i < launch.fds.size(); ++i) ::dup2(lifted[i], next++);
  for (int* fd : {&placed.report, &placed.ruleset}) {
    if (*fd < 0) continue;
    ::dup3(*fd, next, O_CLOEXEC);
    *fd = next++;
  }
  if (placed.exec >= 0) {
    require(launch, Stage::descriptors,
            placed.exec == kExecDescriptor ||
                ::dup3(placed.exec, kExecDescriptor, O_CLOEXEC) == kExecDescriptor);
    placed.exec = kExecDescriptor;
    ::close_range(static_cast<unsigned>(next), kExecDescriptor - 1, 0);
    next = kExecDescriptor + 1;
  }
  ::close_range(static_cast<unsigned>(next), ~0u, 0);
  return placed;
}

void join_group(const Launch& launch) {
  // 0 is the process that writes.
  if (launch.group >= 0) require(launch, Stage::group, ::write(launch.group, "0", 1) == 1);
}

void take_cores(const Launch& launch) {
  if (!launch.cores) return;
  require(launch, Stage::limits, launch.cores->bind_this_thread());
}

void enter_landlock(const Launch& launch, int ruleset) {
  if (ruleset < 0) return;
  int error = 0;
  if (launch.policy == Policy::driver) error = landlock_permit_own_threads(ruleset);
  if (error == 0) error = landlock_enter(ruleset);
  if (error != 0) report_failure(launch, Stage::landlock, error);
}

void install_filter(const Launch& launch, const sock_filter* instructions, std::size_t count) {
  const sock_fprog program{static_cast<unsigned short>(count),
                           const_cast<sock_filter*>(instructions)};
  require(launch, Stage::seccomp, ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

void install_filters(const Launch& launch) {
  if (launch.tier == Tier::none) return;
  if (launch.policy == Policy::driver) {
    const auto own = own_process_filter(::getpid());
    install_filter(launch, own.data(), own.size());
  }
  install_filter(launch, launch.filter.data(), launch.filter.size());
}

[[noreturn]] void run_program(Launch& launch) {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  leave_working_folder(launch);
  join_group(launch);
  take_cores(launch);
  drop_privileges(launch);
  const Placed placed = place_descriptors(launch);
  launch.report = placed.report;
  set_limits(launch);
  enter_landlock(launch, placed.ruleset);
  install_filters(launch);
  auto* const arguments = const_cast<char**>(launch.arguments.data());
  auto* const values = const_cast<char**>(launch.values.data());
  if (placed.exec >= 0) {
    ::syscall(SYS_execveat, placed.exec, "", arguments, values, AT_EMPTY_PATH);
  } else {
    ::execve(launch.exec_path, arguments, values);
  }
  report_failure(launch, Stage::exec, errno);
}

// Waits until the lifeline is closed or the harness is asked to stop. In a pid namespace its exit
// then kills every other process; elsewhere it kills `program` and the descendants that stayed in
// the program's process group.
[[noreturn]] void run_init(const Launch& launch, pid_t program) {
  ::setsid();
  ::signal(SIGCHLD, SIG_IGN);  // orphans are reaped by the kernel
  const bool can_stop = launch.stop >= 0;
  ::dup2(launch.lifeline, 0);
  if (can_stop) ::dup2(launch.stop, 1);
  ::close_range(can_stop ? 2 : 1, ~0u, 0);
  pollfd ends[] = {{0, POLLIN, 0}, {can_stop ? 1 : -1, POLLIN, 0}};
  while (::poll(ends, 2, -1) < 0 && errno == EINTR) {
  }
  if (program > 0) ::kill(-program, SIGKILL);
  ::_exit(0);
}

void start_init(const Launch& launch, Report& report) {
  report.init = fork_as_sibling();
  if (report.init == 0) run_init(launch, report.program);
  if (report.init < 0 && report.program > 0) ::kill(report.program, SIGKILL);
  require(launch, Stage::clone, report.init > 0);
}

}  // namespace

const char* doing(Stage stage) {
  switch (stage) {
    case Stage::fork: return "forking";
    case Stage::user_namespace: return "making a user namespace";
    case Stage::namespaces: return "making namespaces";
    case Stage::root: return "making a root file system";
    case Stage::mount: return "mounting";
    case Stage::pivot: return "changing the root";
    case Stage::clone: return "starting the processes";
    case Stage::group: return "joining a memory group";
    case Stage::privileges: return "dropping privileges";
    case Stage::limits: return "setting limits";
    case Stage::descriptors: return "placing file descriptors";
    case Stage::network: return "leaving the network";
    case Stage::landlock: return "entering Landlock";
    case Stage::seccomp: return "installing the filter";
    case Stage::exec: return "executing";
  }
  return "?";
}

bool shares_files(Tier tier) { return tier == Tier::landlock || tier == Tier::filter; }

pid_t fork_as_sibling() {
  return static_cast<pid_t>(::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
}

bool leave_network(bool root, const char* uid_map, const char* gid_map) {
  if (!root && !make_user_namespace(uid_map, gid_map)) return false;
  return ::unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0;
}

void run_launcher(Launch& launch) {
  Report report;
  if (launch.tier == Tier::namespaces) {
    make_namespaces(launch);
  }
  if (launch.leaves_network) {
    require(launch, Stage::network, leave_network(launch.root, launch.uid_map, launch.gid_map));
  }
  // If memory runs out all the same, the kernel should kill the program first. Not every kernel
  // grants that.
  constexpr const char* kFirstToGo = "1000";
  write_text("/proc/self/oom_score_adj", kFirstToGo);
  if (launch.tier == Tier::namespaces) {
    make_root(launch);
    start_init(launch, report);
  }
  report.program = fork_as_sibling();
  if (report.program == 0) run_program(launch);
  require(launch, Stage::clone, report.program > 0);
  if (launch.tier != Tier::namespaces) start_init(launch, report);
  [[maybe_unused]] const auto n = ::write(launch.report, &report, sizeof report);
  ::_exit(0);
}

}  // namespace assay::sandbox
