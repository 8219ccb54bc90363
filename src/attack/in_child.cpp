#include "attack/in_child.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "assay/error.h"
#include "util/clock.h"
#include "util/files.h"
#include "util/stop.h"

namespace assay::attack {
namespace {

constexpr int kThrew = 3;  // exit status of a child whose work threw

[[noreturn]] void work_and_exit(const std::function<std::string()>& work, int fd, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  restore_stop_signals();  // the parent shuts down in order; the child just dies with it
  int status = 0;
  std::string text;
  try {
    text = work();
  } catch (const std::exception& e) {
    text = e.what();
    status = kThrew;
  }
  try {
    write_all(fd, text, "the answer");
  } catch (const std::exception&) {
    status = 1;
  }
  ::_exit(status);  // not exit(): its handlers belong to the parent
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code ec;
  const std::filesystem::path tasks = fmt::format("/proc/{}/task", pid);
  for (std::filesystem::directory_iterator at(tasks, ec), end; !ec && at != end; at.increment(ec)) {
    std::ifstream in(at->path() / "children");
    for (pid_t child = 0; in >> child;) children.push_back(child);
  }
  return children;
}

bool is_running(pid_t pid) {
  std::string line;
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::getline(in, line);
  const std::size_t at = line.rfind(") ");  // after the name, which may contain anything
  return at != std::string::npos && (line[at + 2] == 'R' || line[at + 2] == 'S');
}

// A process that does not stop in time is killed anyway.
void stop(pid_t pid) {
  constexpr double kPatience = 0.5;  // seconds
  ::kill(pid, SIGSTOP);
  const double begin = steady_seconds();
  while (is_running(pid) && steady_seconds() - begin < kPatience) std::this_thread::yield();
}

// Kills a child and all its descendants, whatever sessions and groups they created. Each is stopped
// before its children are listed, so that it can neither start nor reap any, and no pid in the list
// can have been reused. False if the kernel does not release the child.
bool kill_tree(pid_t root) {
  constexpr double kPatience = 10;  // seconds
  std::vector<pid_t> tree{root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    stop(tree[i]);
    for (const pid_t child : children_of(tree[i])) tree.push_back(child);
  }
  for (const pid_t pid : tree) ::kill(pid, SIGKILL);
  const double begin = steady_seconds();
  while (::waitpid(root, nullptr, WNOHANG) == 0) {
    if (steady_seconds() - begin > kPatience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::string contents(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return {};
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

}  // namespace

Child::Child(const std::function<std::string()>& work, double deadline)
    : answer_(::memfd_create("answer", MFD_CLOEXEC)),
      begin_(steady_seconds()),
      deadline_(deadline) {
  if (!answer_)
    throw Error(fmt::format("no memory for a child's answer: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw Error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid_ == 0) work_and_exit(work, answer_.get(), parent);
}

Child::~Child() {
  if (state_ == State::running) kill_tree(pid_);
}

Child::State Child::end(State state, std::string said) {
  ended_ = steady_seconds();
  said_ = std::move(said);
  return state_ = state;
}

double Child::seconds() const {
  return (state_ == State::running ? steady_seconds() : ended_) - begin_;
}

Child::State Child::look() {
  if (state_ != State::running) return state_;
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0) {
    if (seconds() < deadline_) return state_;
    const bool gone = kill_tree(pid_);
    return end(State::hung, fmt::format("no answer within {:.0f} s{}", deadline_,
                                        gone ? "" : "; killed, and the kernel holds it"));
  }
  if (ended == pid_ && WIFSIGNALED(status)) return end(State::died, ::strsignal(WTERMSIG(status)));
  if (ended == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return end(State::done, contents(answer_.get()));
  if (ended == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == kThrew)
    return end(State::died, contents(answer_.get()));
  return end(State::died, fmt::format("status {:#x}", status));
}

}  // namespace assay::attack
