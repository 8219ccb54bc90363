#include "agent/process_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <string>

#include "assay/error.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/files.h"
#include "util/stop.h"

namespace assay::agent {
namespace {

constexpr int kTickMs = 20;

// The supervisor's final report, sent in one write.
struct Verdict {
  bool started = false;
  int error = 0;        // errno of exec
  int wait_status = 0;  // wait status of the command
  bool timed_out = false, stopped = false;
  bool left = false;  // processes that cannot be killed
};

// Everything the processes between fork and exec need, prepared in advance: they have a copy of
// this process's memory in which other threads' locks may be held, so they must not allocate.
struct Prepared {
  std::vector<std::string> texts;
  std::vector<char*> argv, envp;
  std::vector<std::string> candidates;  // of the program, along the PATH
  std::vector<const char*> paths;
  std::string folder;
  int input = -1, output = -1, control = -1, verdict = -1;
  double time_limit = 0, grace = 0;
};

std::vector<std::string> candidates_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* variable = std::getenv("PATH");
  const std::string path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    found.push_back((folder.empty() ? "." : folder) + "/" + program);
    begin = end + 1;
  }
  return found;
}

Prepared prepared(const Program& program) {
  Prepared p;
  const auto sets = [&](std::string_view entry) {
    return std::ranges::any_of(program.variables, [&](const auto& v) {
      return entry.starts_with(v.first) && entry.substr(v.first.size()).starts_with('=');
    });
  };
  for (const std::string& word : program.command) p.texts.push_back(word);
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry)
    if (!sets(*entry)) p.texts.emplace_back(*entry);
  for (const auto& [name, value] : program.variables)
    p.texts.push_back(fmt::format("{}={}", name, value));
  for (std::size_t i = 0; i < p.texts.size(); ++i)
    (i < program.command.size() ? p.argv : p.envp).push_back(p.texts[i].data());
  p.argv.push_back(nullptr);
  p.envp.push_back(nullptr);
  p.candidates = candidates_of(program.command.front());
  for (const std::string& path : p.candidates) p.paths.push_back(path.c_str());
  p.folder = program.folder.string();
  p.time_limit = program.time_limit;
  p.grace = program.grace;
  return p;
}

// --- in the supervisor and its child: only calls that are safe after a multithreaded fork --------

double raw_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void restore_all_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction now {};
    // A SIGHUP ignored by nohup stays ignored.
    if (signal == SIGHUP && ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN)
      continue;
    ::sigaction(signal, &standard, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become_command(const Prepared& p, int error_pipe) {
  restore_all_signals();
  ::setsid();
  int error = 0;
  if (::dup2(p.input, STDIN_FILENO) < 0 || ::dup2(p.output, STDOUT_FILENO) < 0 ||
      ::dup2(p.output, STDERR_FILENO) < 0 || ::chdir(p.folder.c_str()) != 0) {
    error = errno;
  } else {
    error = ENOENT;
    for (const char* path : p.paths) {
      ::execve(path, p.argv.data(), p.envp.data());
      if (errno != ENOENT && errno != ENOTDIR) error = errno;
    }
  }
  (void)!::write(error_pipe, &error, sizeof error);
  ::_exit(127);
}

// Sends the signal to every child of this process except those in a group that already got it: a
// program that cleans up on SIGTERM must not be interrupted by a second one. Called by the
// process's only thread.
void signal_children(int signal, pid_t but_group) {
  const int fd = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char bytes[4096];
  pid_t pid = 0;
  for (ssize_t n; (n = ::read(fd, bytes, sizeof bytes)) > 0;) {
    for (ssize_t i = 0; i < n; ++i) {
      if (bytes[i] >= '0' && bytes[i] <= '9') {
        pid = pid * 10 + (bytes[i] - '0');
      } else {
        if (pid > 0 && ::getpgid(pid) != but_group) ::kill(pid, signal);
        pid = 0;
      }
    }
  }
  ::close(fd);
}

struct Children {
  pid_t command;
  int command_status = 0;
  bool command_over = false;

  // Reaps dead children; returns false once there are none left.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid == 0) return true;
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return false;
      if (pid != command) continue;
      command_over = true;
      command_status = status;
    }
  }
};

// Kills everything that is left. Orphans become children of this process, so every descendant
// eventually becomes a child and is killed. False if some are not: another user runs them, or they
// wait for a device.
bool end_children(Children& children, double grace) {
  constexpr double kPatience = 10;  // seconds after SIGKILL
  const double deadline = raw_seconds() + grace;
  bool asked = false;
  for (;;) {
    if (!children.reap()) return true;
    const double now = raw_seconds();
    if (now > deadline + kPatience) return false;
    const bool patient = now < deadline;
    if (!patient || !asked) {
      const int signal = patient ? SIGTERM : SIGKILL;
      const pid_t group = children.command_over ? 0 : children.command;
      if (group != 0) ::kill(-group, signal);
      signal_children(signal, group);
      asked = true;
    }
    ::poll(nullptr, 0, patient ? kTickMs : 2);
  }
}

[[noreturn]] void supervise(const Prepared& p) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  // Signals from the terminal or to the whole process group are handled by the harness, which then
  // closes the control pipe.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  Verdict verdict;
  int errors[2] = {-1, -1};
  Children children{-1};
  if (::pipe2(errors, O_CLOEXEC) == 0) children.command = ::fork();
  if (children.command == 0) become_command(p, errors[1]);
  if (children.command < 0) {
    verdict.error = errno;
  } else {
    ::close(errors[1]);
    verdict.started = ::read(errors[0], &verdict.error, sizeof verdict.error) == 0;
  }
  ::close(p.output);  // otherwise its reader would wait for this process
  const double deadline = raw_seconds() + p.time_limit;
  while (verdict.started) {
    children.reap();
    if (children.command_over) break;
    verdict.timed_out = raw_seconds() >= deadline;
    pollfd control{p.control, POLLIN, 0};
    verdict.stopped = !verdict.timed_out && ::poll(&control, 1, kTickMs) > 0;
    if (verdict.timed_out || verdict.stopped) break;
  }
  if (children.command > 0) verdict.left = !end_children(children, p.grace);
  verdict.wait_status = children.command_status;
  (void)!::write(p.verdict, &verdict, sizeof verdict);
  ::_exit(0);
}

// Closes all files except the standard ones and those of `p`: other supervisors' pipes must not
// stay open here.
void close_others(const Prepared& p) {
  std::array<int, 4> kept{p.input, p.output, p.control, p.verdict};
  std::ranges::sort(kept);
  int from = 3;
  for (const int fd : kept) {
    if (fd > from) ::close_range(static_cast<unsigned>(from), static_cast<unsigned>(fd) - 1, 0);
    from = std::max(from, fd + 1);
  }
  ::close_range(static_cast<unsigned>(from), ~0U, 0);
}

// --- in the harness ------------------------------------------------------------------------------

void reap_supervisor(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Passes on what can be read now; false at end of file.
bool read_some(int fd, const std::function<void(std::string_view)>& on_output) {
  std::array<char, 65536> bytes{};
  const ssize_t n = ::read(fd, bytes.data(), bytes.size());
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n > 0) on_output({bytes.data(), static_cast<std::size_t>(n)});
  return n > 0;
}

}  // namespace

Ended run_program(const Program& program, const std::function<void(std::string_view)>& on_output) {
  if (program.command.empty()) throw Error("no command to run");
  check_stop();
  Prepared p = prepared(program);
  const std::string input_path = program.input.empty() ? "/dev/null" : program.input.string();
  const Fd input(::open(input_path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!input) fail_with_errno("read", input_path);
  Pipe output = make_pipe(), control = make_pipe(), verdict_pipe = make_pipe();
  p.input = input.get();
  p.output = output.write.get();
  p.control = control.read.get();
  p.verdict = verdict_pipe.write.get();

  const double begin = steady_seconds();
  const pid_t supervisor = ::fork();
  if (supervisor < 0) throw Error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (supervisor == 0) {
    close_others(p);
    supervise(p);
  }
  output.write.reset();
  control.read.reset();
  verdict_pipe.write.reset();

  std::exception_ptr failure;
  const auto take_output = [&] {
    try {
      return read_some(output.read.get(), failure ? [](std::string_view) {} : on_output);
    } catch (...) {  // from on_output: the disk is full
      failure = std::current_exception();
      control.write.reset();
      return true;
    }
  };
  Verdict verdict;
  bool told = false;
  constexpr double kLastOutput = 10;  // seconds
  double verdict_at = 0;
  for (bool over = false, open = true; !over;) {
    std::array<pollfd, 3> files{pollfd{open ? output.read.get() : -1, POLLIN, 0},
                                pollfd{verdict_pipe.read.get(), POLLIN, 0},
                                pollfd{control.write ? stop_fd() : -1, POLLIN, 0}};
    if (::poll(files.data(), files.size(), -1) < 0) continue;
    if (files[2].revents != 0) control.write.reset();  // asks the supervisor to stop
    if (files[0].revents != 0) open = take_output();
    if (files[1].revents == 0) continue;
    const double now = steady_seconds();
    if (verdict_at == 0) verdict_at = now;
    // What cannot be killed may write for ever.
    if (files[0].revents != 0 && now < verdict_at + kLastOutput) continue;
    // Nothing is left to read, and no process of the program is left to write: any other holder of
    // the pipe is not part of the program.
    told = ::read(verdict_pipe.read.get(), &verdict, sizeof verdict) == sizeof verdict;
    over = true;
  }
  reap_supervisor(supervisor);
  if (failure) std::rethrow_exception(failure);
  if (!told) throw Error("the process that watches over the command was killed");
  if (!verdict.started) {
    throw Error(fmt::format("cannot start '{}': {}", program.command.front(),
                            std::strerror(verdict.error)));
  }
  if (verdict.left) {
    throw Error(
        fmt::format("what '{}' started cannot be killed: another user may run it; end it by hand",
                    program.command.front()));
  }
  Ended ended;
  ended.seconds = steady_seconds() - begin;
  ended.how = verdict.timed_out                  ? Ended::How::timed_out
              : verdict.stopped                  ? Ended::How::stopped
              : WIFSIGNALED(verdict.wait_status) ? Ended::How::killed
                                                 : Ended::How::exited;
  ended.status = WIFSIGNALED(verdict.wait_status) ? WTERMSIG(verdict.wait_status)
                                                  : WEXITSTATUS(verdict.wait_status);
  return ended;
}

}  // namespace assay::agent
