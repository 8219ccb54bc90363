#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "assay/error.h"
#include "sandbox/landlock.h"
#include "sandbox/launch_request.h"
#include "sandbox/seccomp_policy.h"
#include "sandbox/spawner.h"
#include "sandbox/wait_child.h"
#include "sandbox/workplace.h"
#include "util/files.h"
#include "util/stop.h"
#include "util/transient_fault.h"
#include "util/try_in_child.h"

namespace assay::sandbox {
namespace {

// "/a", "/a/b" for "/a/b/c".
void add_parents(const std::string& path, std::vector<std::string>& parents) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    parents.push_back(path.substr(0, slash));
  }
}

// One more than the highest id that exists here. A container may have a few thousand only.
std::uint64_t end_of_ids(const char* map) {
  std::ifstream in(map);
  std::uint64_t end = 0;
  for (std::uint64_t inside, outside, count; in >> inside >> outside >> count;) {
    end = std::max(end, inside + count);
  }
  return end;
}

// A uid that no account and no other sandbox uses, so that limits per user apply to one sandbox. It
// serves as the gid, too.
uid_t fresh_uid() {
  constexpr std::uint32_t kFirst = 0x60000000u, kPerProcess = 1024, kProcesses = 0x10000u;
  const std::uint64_t end =
      std::min(end_of_ids("/proc/self/uid_map"), end_of_ids("/proc/self/gid_map"));
  static std::atomic<std::uint32_t> next{0};
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::uint32_t slot = pid % kProcesses * kPerProcess + next++ % kPerProcess;
  if (end == 0 || end > kFirst + kProcesses * kPerProcess) return kFirst + slot;
  // From the upper half of the ids that there are, without nobody's.
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

void check_program(Tier tier, const Program& program) {
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
}

void add_mounts(LaunchRequest& request, const std::vector<Mount>& mounts) {
  const Launch& launch = request.launch;
  std::vector<LaunchMount> shown;
  std::vector<std::string> parents;
  for (const Mount& mount : mounts) {
    struct stat info {};
    if (::stat(mount.host.c_str(), &info) != 0) fail_with_errno("open", mount.host);
    require_reach(launch.tier, mount);
    if (launch.root && mount.writable && launch.tier != Tier::none &&
        ::chown(mount.host.c_str(), launch.uid, launch.uid) != 0) {
      throw_errno(fmt::format("cannot give {} to the sandbox", mount.host));
    }
    // Only this tier mounts anything. Others may list more files than kMaxMounts.
    if (launch.tier != Tier::namespaces) continue;
    add_parents(mount.inside, parents);
    shown.push_back({.host = request.text(std::filesystem::absolute(mount.host)),
                     .inside = request.text(mount.inside),
                     .writable = mount.writable,
                     .directory = S_ISDIR(info.st_mode)});
  }
  request.launch.mounts = request.values(shown);
  request.launch.parents = request.texts(parents);
}

// The program's cores, or by default those of the calling thread.
void add_cores(Launch& launch, const std::vector<int>& cores) {
  if (cores.empty()) {
    launch.cores = CpuSet::of_this_thread();
    if (!launch.cores) throw_errno("cannot tell which CPUs this thread may run on");
    return;
  }
  launch.cores.emplace();
  for (const int core : cores) launch.cores->add(core);
}

// Tried in a child, because a process that fails halfway has lost its user. Where it does not work,
// the filter alone keeps the driver's process from the network.
bool can_leave_network(bool root, const std::string& uid_map, const std::string& gid_map) {
  static const bool can =
      try_in_child([&] { return leave_network(root, uid_map.c_str(), gid_map.c_str()); });
  return can;
}

LaunchRequest prepare(Tier tier, const Program& program) {
  check_program(tier, program);
  LaunchRequest request;
  Launch& launch = request.launch;
  launch.tier = tier;
  launch.policy = program.policy;
  launch.limits = program.limits;
  launch.tmp_bytes = program.tmp_bytes;
  launch.root = ::geteuid() == 0;
  launch.uid = launch.root ? fresh_uid() : ::geteuid();
  const std::string uid_map = fmt::format("{0} {0} 1", ::geteuid());
  const std::string gid_map = fmt::format("{0} {0} 1", ::getegid());
  launch.uid_map = request.text(uid_map);
  launch.gid_map = request.text(gid_map);
  launch.tmp_options = request.text(fmt::format("size={},mode=1777", program.tmp_bytes));
  add_mounts(request, program.mounts);
  launch.exec_path = request.text(program.exec_path);
  launch.arguments = request.arguments(program.argv);
  launch.values = request.arguments(program.env);
  add_cores(launch, program.cores);
  if (tier != Tier::none) launch.filter = request.values(seccomp_program(program.policy, tier));
  if (shares_files(tier) && program.policy == Policy::driver)
    launch.leaves_network = can_leave_network(launch.root, uid_map, gid_map);
  launch.fds = request.descriptors_of(program.fds);
  launch.exec = request.descriptor(program.exec_fd);
  launch.group = request.descriptor(program.group_fd);
  launch.stop = request.descriptor(stop_fd());
  return request;
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

// Launching touches only host mounts (which may hang), never the submission.
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
  if (report.stage == Stage::fork) throw_errno("cannot fork", report.error);
  const std::string failure =
      fmt::format("the sandbox failed while {}{}", doing(report.stage),
                  report.stage == Stage::exec ? " " + program.exec_path : "");
  // The machine's limit on namespaces is reached until other sandboxes end.
  const bool too_many = report.error == ENOSPC && (report.stage == Stage::user_namespace ||
                                                   report.stage == Stage::namespaces);
  if (too_many) throw TransientFault(failure + ": there are too many namespaces");
  throw_errno(failure, report.error);
}

// Reaps the launcher, once its process id is known.
class Launcher {
 public:
  Launcher() = default;
  ~Launcher() { end(); }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  void is(pid_t pid) { pid_ = pid; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    reap_child(pid_);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
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
  LaunchRequest request = prepare(tier, program);
  Fd ruleset;
  if (tier == Tier::landlock) {
    ruleset = landlock_ruleset(program.mounts, program.devices);
    request.launch.ruleset = request.descriptor(ruleset.get());
  }
  Pipe report_pipe = make_pipe(), lifeline = make_pipe();
  request.launch.report = request.descriptor(report_pipe.write.get());
  request.launch.lifeline = request.descriptor(lifeline.read.get());
  start_launcher(request);
  report_pipe.write.reset();
  lifeline.read.reset();

  Process process;
  process.own_namespace_ = tier == Tier::namespaces;
  Launcher launcher;
  std::optional<Report> failure;
  // The spawner reports the launcher. The launcher reports its two processes or its failure. The
  // program reports only a failure before exec, and exec closes the pipe.
  for (Report report; read_report(report_pipe.read.get(), report) == sizeof report;) {
    if (report.error != 0) failure = report;
    if (report.launcher > 0) launcher.is(report.launcher);
    if (report.program > 0) {
      process.init_ = report.init;
      process.pid_ = report.program;
      process.pidfd_ = open_pidfd(report.program);
    }
  }
  launcher.end();  // nothing more will come from it
  process.lifeline_ = std::move(lifeline.write);
  if (failure) fail_to_launch(*failure, program);
  if (!process.pidfd_) throw TransientFault("the sandbox's launcher died");
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

// SIGCONT cancels a stop that is under way. The filter keeps the program from sending it. For
// programs without a filter the stop is repeated for a while.
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

// "42 (name) R parent group session terminal its_group flags ...". The name may hold any character,
// parentheses included.
bool tells_of_end(std::string_view stat) {
  constexpr unsigned long kExiting = 4;  // PF_EXITING
  const std::size_t name = stat.rfind(") ");
  if (name == std::string_view::npos) return false;
  std::istringstream in{std::string(stat.substr(name + 2))};
  std::string state, number;
  unsigned long flags = 0;
  in >> state;
  for (int i = 0; i < 5; ++i) in >> number;
  in >> flags;
  return state == "Z" || (flags & kExiting) != 0;
}

bool Process::first_thread_ended() const {
  if (pid_ < 0 || exit_) return false;
  std::ifstream in(fmt::format("/proc/{}/stat", pid_));
  return tells_of_end(std::string{std::istreambuf_iterator<char>(in), {}});
}

double Process::cpu_seconds() const {
  clockid_t clock{};
  timespec time{};
  if (pid_ < 0 || ::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// A schedstat is "running queued timeslices", in nanoseconds, for one thread.
std::map<pid_t, double> Process::queued_seconds() const {
  std::map<pid_t, double> by_thread;
  if (pid_ < 0 || exit_) return by_thread;
  std::error_code gone;  // a thread, or the whole process, may end during this loop
  for (std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", pid_), gone), end;
       !gone && thread != end; thread.increment(gone)) {
    std::ifstream in(thread->path() / "schedstat");
    double running = 0, queued = 0;
    if (in >> running >> queued)
      by_thread[static_cast<pid_t>(std::stol(thread->path().filename()))] = queued * 1e-9;
  }
  return by_thread;
}

// Without a pid namespace, kills what the program started. Must come before the program is reaped,
// while no other process can have its id.
void Process::kill_group() {
  if (own_namespace_) return;
  if (init_ > 0) {
    ::kill(init_, SIGKILL);
    reap_child(init_);
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
    reap_child(init_);
    init_ = -1;
  }
  pid_ = -1;
  return exit_.has_value();
}

}  // namespace assay::sandbox
