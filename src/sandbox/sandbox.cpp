#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "assay/error.h"
#include "sandbox/landlock.h"
#include "sandbox/seccomp_policy.h"
#include "sandbox/wait_child.h"
#include "sandbox/workplace.h"
#include "util/files.h"
#include "util/stop.h"
#include "util/transient_fault.h"
#include "util/try_in_child.h"

namespace assay::sandbox {
namespace {

// Where in the launch something failed; sent to the harness with errno.
enum class Stage : int {
  user_namespace,
  namespaces,
  root,
  mount,
  pivot,
  clone,
  group,
  privileges,
  limits,
  descriptors,
  network,
  landlock,
  seccomp,
  exec,
};

constexpr std::array kStageNames{"making a user namespace",
                                 "making namespaces",
                                 "making a root file system",
                                 "mounting",
                                 "changing the root",
                                 "starting the processes",
                                 "joining a memory group",
                                 "dropping privileges",
                                 "setting limits",
                                 "placing file descriptors",
                                 "leaving the network",
                                 "entering Landlock",
                                 "installing the filter",
                                 "executing"};

struct Report {
  Stage stage{};
  int error = 0;
  pid_t init = -1, program = -1;  // when error == 0
};

struct MountSource {
  int tree = -1;  // open_tree(2) clone, made by the launcher
  bool directory = false;
};

// What arrays on the launcher's stack hold: it may not allocate. prepare() sees to it.
constexpr std::size_t kMaxMounts = 32, kMaxDescriptors = 32;

// Everything the launcher needs, prepared before fork: after it only async-signal-safe calls run.
struct Launch {
  const Program* program = nullptr;
  Tier tier = Tier::none;
  bool root = false;
  bool leaves_network = false;
  uid_t uid = 0;
  std::string uid_map, gid_map, tmp_options, oom_score = "1000";
  std::vector<std::string> parents;  // folders to create in the new root, outermost first
  std::vector<bool> is_directory;    // per mount
  std::vector<char*> argv, env;
  std::optional<cpu_set_t> cores;
  const std::vector<sock_filter>* filter = nullptr;
  int ruleset = -1, report = -1, lifeline = -1;
};

bool shares_files(Tier tier) { return tier == Tier::landlock || tier == Tier::filter; }

[[noreturn]] void report_failure(const Launch& launch, Stage stage, int error) {
  const Report report{stage, error};
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

bool make_user_namespace(const std::string& uid_map, const std::string& gid_map) {
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

// A network of its own, with nothing in it, and System V's shared memory.
bool leave_network(const Launch& launch) {
  if (!launch.root && !make_user_namespace(launch.uid_map, launch.gid_map)) return false;
  return ::unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0;
}

bool set_attributes(int fd, const char* path, std::uint64_t attributes, unsigned flags) {
  mount_attr attr{};
  attr.attr_set = attributes;
  return ::mount_setattr(fd, path, flags, &attr, sizeof attr) == 0;
}

// A tmpfs root that shows the mounts and nothing else, read-only where not writable.
void make_root(const Launch& launch) {
  const Program& program = *launch.program;
  require(launch, Stage::root, ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  // Trees are cloned before the staging folder hides anything.
  std::array<int, kMaxMounts> trees{};
  for (std::size_t i = 0; i < program.mounts.size(); ++i) {
    trees[i] = ::open_tree(AT_FDCWD, program.mounts[i].host.c_str(),
                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    require(launch, Stage::mount, trees[i] >= 0);
    const std::uint64_t attributes =
        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (program.mounts[i].writable ? 0 : MOUNT_ATTR_RDONLY);
    require(launch, Stage::mount,
            set_attributes(trees[i], "", attributes, AT_EMPTY_PATH | AT_RECURSIVE));
  }
  require(launch, Stage::root,
          ::mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755") == 0);
  require(launch, Stage::root, ::chdir("/tmp") == 0);
  for (const std::string& folder : launch.parents) {
    require(launch, Stage::root, ::mkdir(folder.c_str() + 1, 0755) == 0 || errno == EEXIST);
  }
  for (std::size_t i = 0; i < program.mounts.size(); ++i) {
    const char* inside = program.mounts[i].inside.c_str() + 1;
    if (launch.is_directory[i]) {
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
  if (program.tmp_bytes > 0) {
    require(launch, Stage::mount, ::mkdir("tmp", 0755) == 0 || errno == EEXIST);
    require(
        launch, Stage::mount,
        ::mount("tmpfs", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, launch.tmp_options.c_str()) == 0);
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

void set_limits(const Launch& launch) {
  const Limits& limits = launch.program->limits;
  set_limit(launch, RLIMIT_CORE, 0);
  // A GPU's driver locks what the GPU reads and writes; it has the harness's limit.
  if (launch.program->policy != Policy::driver) set_limit(launch, RLIMIT_MEMLOCK, 0);
  set_limit(launch, RLIMIT_MSGQUEUE, 0);
  set_limit(launch, RLIMIT_FSIZE, limits.file_size);
  set_limit(launch, RLIMIT_NOFILE, limits.open_files);
  set_limit(launch, RLIMIT_STACK, limits.stack);
  if (limits.address_space > 0) set_limit(launch, RLIMIT_AS, limits.address_space);
  if (limits.data > 0) set_limit(launch, RLIMIT_DATA, limits.data);
  if (limits.cpu_seconds > 0) set_limit(launch, RLIMIT_CPU, limits.cpu_seconds);
  // The limit is of a user's processes. Where those are all that he runs on this machine it would
  // be reached by what has nothing to do with the program. There address space bounds threads,
  // workers cannot start processes, and compilers run no code of a submission.
  const bool own_user = launch.root || launch.tier == Tier::namespaces;
  if (limits.processes > 0 && own_user) set_limit(launch, RLIMIT_NPROC, limits.processes);
}

void drop_privileges(const Launch& launch) {
  if (launch.root && launch.tier != Tier::none) {
    // System calls, not libc's functions: those take a lock to tell every thread of the process,
    // and the harness's other threads, which may have held it, do not exist here.
    const uid_t id = launch.uid;
    require(launch, Stage::privileges,
            ::syscall(SYS_setgroups, 0, nullptr) == 0 &&
                ::syscall(SYS_setresgid, id, id, id) == 0 &&
                ::syscall(SYS_setresuid, id, id, id) == 0);
  }
  require(launch, Stage::privileges, ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

// Two tiers share the host's tree: what the harness's own working folder is called there is none of
// the program's business.
void leave_working_folder(const Launch& launch) {
  if (shares_files(launch.tier)) require(launch, Stage::privileges, ::chdir("/") == 0);
}

// Descriptors that last until exec, which closes the first and the last; -1: there is none.
struct Placed {
  int report = -1, exec = -1, ruleset = -1;
};

// Moves the program's descriptors to 0, 1, ... and closes all others. The report and the ruleset
// lie just above them, the executable at kExecDescriptor, which the filter knows.
Placed place_descriptors(const Launch& launch) {
  const auto& fds = launch.program->fds;
  constexpr int kHigh = 200;
  std::array<int, kMaxDescriptors> lifted{};
  for (std::size_t i = 0; i < fds.size(); ++i) {
    lifted[i] = ::fcntl(fds[i], F_DUPFD_CLOEXEC, kHigh);
    require(launch, Stage::descriptors, lifted[i] >= 0);
  }
  Placed placed;
  placed.report = ::fcntl(launch.report, F_DUPFD_CLOEXEC, kHigh);
  if (launch.program->exec_fd >= 0) {
    placed.exec = ::fcntl(launch.program->exec_fd, F_DUPFD_CLOEXEC, kHigh);
  }
  if (launch.ruleset >= 0) placed.ruleset = ::fcntl(launch.ruleset, F_DUPFD_CLOEXEC, kHigh);
  int next = 0;
  for (std::size_t i = 0; i < fds.size(); ++i) ::dup2(lifted[i], next++);
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
  const int group = launch.program->group_fd;
  // 0 is the process that writes.
  if (group >= 0) require(launch, Stage::group, ::write(group, "0", 1) == 1);
}

void take_cores(const Launch& launch) {
  if (!launch.cores) return;
  require(launch, Stage::limits, ::sched_setaffinity(0, sizeof *launch.cores, &*launch.cores) == 0);
}

void enter_landlock(const Launch& launch, int ruleset) {
  if (ruleset < 0) return;
  int error = 0;
  if (launch.program->policy == Policy::driver) error = landlock_permit_own_threads(ruleset);
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
  if (launch.program->policy == Policy::driver) {
    const auto own = own_process_filter(::getpid());
    install_filter(launch, own.data(), own.size());
  }
  install_filter(launch, launch.filter->data(), launch.filter->size());
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
  if (placed.exec >= 0) {
    ::syscall(SYS_execveat, placed.exec, "", launch.argv.data(), launch.env.data(), AT_EMPTY_PATH);
  } else {
    ::execve(launch.program->exec_path.c_str(), launch.argv.data(), launch.env.data());
  }
  report_failure(launch, Stage::exec, errno);
}

// Waits for the end of the lifeline, or until the harness is asked to stop. In a pid namespace its
// own end is that of all others; elsewhere it kills `program` and those of its descendants that
// stayed in its process group.
[[noreturn]] void run_init(const Launch& launch, pid_t program) {
  ::setsid();
  ::signal(SIGCHLD, SIG_IGN);  // orphans are reaped by the kernel
  const int stop = stop_fd();
  ::dup2(launch.lifeline, 0);
  if (stop >= 0) ::dup2(stop, 1);
  ::close_range(stop >= 0 ? 2 : 1, ~0u, 0);
  pollfd ends[] = {{0, POLLIN, 0}, {stop >= 0 ? 1 : -1, POLLIN, 0}};
  while (::poll(ends, 2, -1) < 0 && errno == EINTR) {
  }
  if (program > 0) ::kill(-program, SIGKILL);
  ::_exit(0);
}

// fork, but as a child of the launcher's parent, the harness. Not clone3: containers refuse it.
pid_t fork_as_sibling() {
  return static_cast<pid_t>(::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0));
}

void start_init(const Launch& launch, Report& report) {
  report.init = fork_as_sibling();
  if (report.init == 0) run_init(launch, report.program);
  if (report.init < 0 && report.program > 0) ::kill(report.program, SIGKILL);
  require(launch, Stage::clone, report.init > 0);
}

[[noreturn]] void run_launcher(Launch& launch) {
  Report report;
  if (launch.tier == Tier::namespaces) {
    make_namespaces(launch);
  }
  if (launch.leaves_network) require(launch, Stage::network, leave_network(launch));
  // Where memory runs out all the same, the program goes first. A wish: not every kernel grants it.
  write_text("/proc/self/oom_score_adj", launch.oom_score);
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

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const auto& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

// "/a", "/a/b" for "/a/b/c".
void add_parents(const std::string& path, std::vector<std::string>& parents) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    parents.push_back(path.substr(0, slash));
  }
}

// One more than the highest id that exists here: a container may have only some thousands.
std::uint64_t end_of_ids(const char* map) {
  std::ifstream in(map);
  std::uint64_t end = 0;
  for (std::uint64_t inside, outside, count; in >> inside >> outside >> count;) {
    end = std::max(end, inside + count);
  }
  return end;
}

// A uid that no account and no other sandbox uses, so that limits per user count one sandbox. Also
// used as a gid.
uid_t fresh_uid() {
  constexpr std::uint32_t kFirst = 0x60000000u, kPerProcess = 1024, kProcesses = 0x10000u;
  const std::uint64_t end =
      std::min(end_of_ids("/proc/self/uid_map"), end_of_ids("/proc/self/gid_map"));
  static std::atomic<std::uint32_t> next{0};
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::uint32_t slot = pid % kProcesses * kPerProcess + next++ % kPerProcess;
  if (end == 0 || end > kFirst + kProcesses * kPerProcess) return kFirst + slot;
  // The upper half of what there is, but for nobody's.
  constexpr std::uint32_t kNobody = 65534;
  const auto half = static_cast<std::uint32_t>(end / 2);
  const std::uint32_t id = half + slot % std::max(half, 1u);
  return id == kNobody ? id - 1 : id;
}

void require_reach(Tier tier, const Mount& mount) {
  const std::string why =
      shares_files(tier) && ::geteuid() == 0
          ? why_out_of_reach(tier, std::filesystem::path(mount.host).parent_path())
          : "";
  if (!why.empty()) {
    throw Error(fmt::format("sandboxed programs cannot reach {}: {}", mount.host, why));
  }
}

// A child tries it, because a process that fails halfway is left without a user. Where it does not
// work the filter alone keeps the driver's process from the network.
bool can_leave_network(const Launch& launch) {
  static const bool can = try_in_child([&] { return leave_network(launch); });
  return can;
}

Launch prepare(Tier tier, const Program& program) {
  Launch launch;
  launch.program = &program;
  launch.tier = tier;
  launch.root = ::geteuid() == 0;
  launch.uid = launch.root ? fresh_uid() : ::geteuid();
  launch.uid_map = fmt::format("{0} {0} 1", ::geteuid());
  launch.gid_map = fmt::format("{0} {0} 1", ::getegid());
  launch.tmp_options = fmt::format("size={},mode=1777", program.tmp_bytes);
  if (tier == Tier::namespaces && program.policy == Policy::driver) {
    throw Error("the driver of a GPU has no sandbox of namespaces: it needs the host's devices");
  }
  if (tier == Tier::filter && program.policy != Policy::driver) {
    throw Error("only the driver of a GPU has a sandbox that is no more than a filter");
  }
  if (tier == Tier::namespaces && program.mounts.size() > kMaxMounts) {
    throw Error(fmt::format("a sandbox shows at most {} files and folders, not {}", kMaxMounts,
                            program.mounts.size()));
  }
  if (program.fds.size() > kMaxDescriptors) {
    throw Error(fmt::format("a sandboxed program is given at most {} descriptors, not {}",
                            kMaxDescriptors, program.fds.size()));
  }
  if (program.exec_fd >= 0 && program.limits.open_files > kExecDescriptor) {
    throw Error("a sandboxed program may have so many files that it could execute one");
  }
  for (const Mount& mount : program.mounts) {
    struct stat info {};
    if (::stat(mount.host.c_str(), &info) != 0) {
      fail_with_errno("open", mount.host);
    }
    require_reach(tier, mount);
    launch.is_directory.push_back(S_ISDIR(info.st_mode));
    add_parents(mount.inside, launch.parents);
    if (launch.root && mount.writable && tier != Tier::none &&
        ::chown(mount.host.c_str(), launch.uid, launch.uid) != 0) {
      throw_errno(fmt::format("cannot give {} to the sandbox", mount.host));
    }
  }
  launch.argv = pointers(program.argv);
  launch.env = pointers(program.env);
  if (!program.cores.empty()) {
    launch.cores.emplace();
    CPU_ZERO(&*launch.cores);
    for (const int core : program.cores) CPU_SET(core, &*launch.cores);
  }
  if (tier != Tier::none) launch.filter = &seccomp_program(program.policy, tier);
  if (shares_files(tier) && program.policy == Policy::driver)
    launch.leaves_network = can_leave_network(launch);
  return launch;
}

// A process descriptor is readable once every thread has ended.
bool has_ended(int pidfd, std::chrono::nanoseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left = std::max<std::chrono::nanoseconds>(
        deadline - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0));
    const timespec limit{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    pollfd entry{pidfd, POLLIN, 0};
    const int ready = ::ppoll(&entry, 1, &limit, nullptr);
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

Fd open_pidfd(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

// Launching touches nothing of a submission's, but the host's mounts, which may hang.
constexpr std::chrono::seconds kLaunchPatience{60};

ssize_t read_report(int fd, Report& report) {
  pollfd entry{fd, POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&entry, 1, static_cast<int>(std::chrono::milliseconds(kLaunchPatience).count()));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) throw TransientFault("the sandbox's launcher hangs");
  return ::read(fd, &report, sizeof report);
}

[[noreturn]] void fail_to_launch(const Report& report, const Program& program) {
  const std::string failure = fmt::format(
      "the sandbox failed while {}{}", kStageNames[static_cast<std::size_t>(report.stage)],
      report.stage == Stage::exec ? " " + program.exec_path : "");
  // So many namespaces are there, in all, until other sandboxes end.
  const bool too_many = report.error == ENOSPC && (report.stage == Stage::user_namespace ||
                                                   report.stage == Stage::namespaces);
  if (too_many) throw TransientFault(failure + ": there are too many namespaces");
  throw_errno(failure, report.error);
}

// Of what has been killed, or ends by itself.
constexpr std::chrono::seconds kReapPatience{10};

bool reap(pid_t pid) {
  if (wait_for_child(pid, WEXITED, kReapPatience) != Seen::ended) return false;
  return ::waitpid(pid, nullptr, WNOHANG) == pid;
}

// The launcher, until it is known to be gone.
class Launcher {
 public:
  explicit Launcher(pid_t pid) : pid_(pid) {}
  ~Launcher() {
    ::kill(pid_, SIGKILL);
    reap(pid_);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

 private:
  pid_t pid_;
};

}  // namespace

const char* to_string(Tier tier) {
  switch (tier) {
    case Tier::namespaces: return "namespaces+seccomp";
    case Tier::landlock: return "landlock+seccomp";
    case Tier::filter: return "seccomp";
    case Tier::none: return "none";
  }
  return "?";
}

std::string visible(Tier tier, const Mount& mount) {
  return tier == Tier::namespaces ? mount.inside : mount.host;
}

double Exit::cpu_seconds() const {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Process spawn(Tier tier, const Program& program) {
  check_stop();
  Launch launch = prepare(tier, program);
  Fd ruleset;
  if (tier == Tier::landlock) {
    ruleset = landlock_ruleset(program.mounts, program.devices);
    launch.ruleset = ruleset.get();
  }
  Pipe report_pipe = make_pipe(), lifeline = make_pipe();
  launch.report = report_pipe.write.get();
  launch.lifeline = lifeline.read.get();

  Process process;
  const pid_t child = ::_Fork();
  if (child < 0) throw_errno("cannot fork");
  if (child == 0) {
    ::close(lifeline.write.get());
    run_launcher(launch);
  }
  std::optional<Launcher> launcher(child);
  report_pipe.write.reset();
  lifeline.read.reset();

  process.own_namespace_ = tier == Tier::namespaces;
  Report report;
  // The launcher's report with the process ids, or a failure; then nothing (exec closes the pipe)
  // or the program's failure before exec.
  bool started = false;
  ssize_t n;
  while ((n = read_report(report_pipe.read.get(), report)) == sizeof report && report.error == 0) {
    started = true;
    process.init_ = report.init;
    process.pid_ = report.program;
    process.pidfd_ = open_pidfd(report.program);
  }
  launcher.reset();  // it has said all that it has to say
  process.lifeline_ = std::move(lifeline.write);
  if (n == sizeof report) fail_to_launch(report, program);
  if (!started || !process.pidfd_) throw TransientFault("the sandbox's launcher died");
  return process;
}

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  kill();
  pid_ = std::exchange(other.pid_, -1);
  init_ = std::exchange(other.init_, -1);
  pidfd_ = std::move(other.pidfd_);
  lifeline_ = std::move(other.lifeline_);
  exit_ = std::exchange(other.exit_, std::nullopt);
  own_namespace_ = other.own_namespace_;
  return *this;
}

// A signal that continues the program may cancel a stop that is under way. The filter refuses the
// program such signals; without a filter the stop is asked for again, for a while.
Process::Stop Process::stop(std::chrono::nanoseconds patience) {
  constexpr std::chrono::milliseconds kAgain{50};
  if (exit_ || pid_ < 0) return Stop::ended;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  do {
    ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGSTOP, nullptr, 0);
    switch (wait_for_child(pid_, WSTOPPED | WEXITED, kAgain)) {
      case Seen::stopped: {
        siginfo_t info{};
        ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG);  // consume it
        return Stop::stopped;
      }
      case Seen::ended: return Stop::ended;
      case Seen::nothing: break;
    }
  } while (std::chrono::steady_clock::now() < deadline);
  kill();
  return Stop::refused;
}

void Process::resume() { ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGCONT, nullptr, 0); }

std::optional<Exit> Process::wait(std::chrono::nanoseconds timeout) {
  if (exit_ || pid_ < 0) return exit_;
  if (!has_ended(pidfd_.get(), timeout)) return std::nullopt;
  kill_group();
  take_exit();
  return exit_;
}

void Process::take_exit() {
  Exit exit;
  if (::wait4(pid_, &exit.status, WNOHANG, &exit.usage) == pid_) exit_ = exit;
}

// "42 (name) Z ...": the name may hold anything, parentheses too.
bool Process::first_thread_ended() const {
  if (pid_ < 0 || exit_) return false;
  std::ifstream in(fmt::format("/proc/{}/stat", pid_));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t name = text.rfind(") ");
  return name != std::string::npos && name + 2 < text.size() && text[name + 2] == 'Z';
}

double Process::cpu_seconds() const {
  clockid_t clock{};
  timespec time{};
  if (pid_ < 0 || ::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// "running queued timeslices", in nanoseconds, of each thread.
double Process::queued_seconds() const {
  if (pid_ < 0 || exit_) return 0;
  double most = 0;
  std::error_code gone;  // a thread, or the whole process, may end during this loop
  for (std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", pid_), gone), end;
       !gone && thread != end; thread.increment(gone)) {
    std::ifstream in(thread->path() / "schedstat");
    double running = 0, queued = 0;
    if (in >> running >> queued) most = std::max(most, queued * 1e-9);
  }
  return most;
}

// Without a pid namespace: ends what the program started. Before the program is reaped, while its
// id is nobody else's.
void Process::kill_group() {
  if (own_namespace_) return;
  if (init_ > 0) {
    ::kill(init_, SIGKILL);
    reap(init_);
    init_ = -1;
  }
  ::kill(-pid_, SIGKILL);
}

bool Process::kill() {
  if (pid_ < 0) return true;
  if (!exit_) kill_group();
  lifeline_.reset();  // init exits, and with it the whole pid namespace
  if (!exit_) {
    ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
    if (has_ended(pidfd_.get(), kReapPatience)) take_exit();
  }
  if (init_ > 0) {
    ::kill(init_, SIGKILL);
    reap(init_);
    init_ = -1;
  }
  pid_ = -1;
  return exit_.has_value();
}

}  // namespace assay::sandbox
