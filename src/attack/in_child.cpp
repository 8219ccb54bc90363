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

#include "util/clock.h"
#include "util/files.h"
#include "util/stop.h"

namespace assay::attack {
namespace {

constexpr int kThrew = 3;  // exit status of a child whose work threw

[[noreturn]] void work_and_exit(const std::function<std::string()>& work, int fd, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  restore_stop_signals();  // the parent ends in order; this goes with it
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
  ::_exit(status);  // not exit(): what is registered there belongs to the parent
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
  if (state_ != State::running) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
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
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    return end(State::hung, fmt::format("no answer within {:.0f} s", deadline_));
  }
  if (ended == pid_ && WIFSIGNALED(status)) return end(State::died, ::strsignal(WTERMSIG(status)));
  if (ended == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return end(State::done, contents(answer_.get()));
  if (ended == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == kThrew)
    return end(State::died, contents(answer_.get()));
  return end(State::died, fmt::format("status {:#x}", status));
}

}  // namespace assay::attack
