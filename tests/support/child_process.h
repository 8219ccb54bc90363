// Child processes that a test may kill.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "util/fd.h"

namespace assay::testing {

// Runs `action` in a fork. Tests that use it must have no other threads.
class ChildProcess {
 public:
  template <class Action>
  explicit ChildProcess(Action action) : pipe_(make_pipe()), pid_(::fork()) {
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ > 0) {
      pipe_.write.reset();
      return;
    }
    int status = 0;
    try {
      action(*this);
    } catch (...) {
      status = 1;
    }
    ::_exit(status);
  }
  ~ChildProcess() {
    if (pid_ > 0) kill();
  }
  ChildProcess(const ChildProcess&) = delete;

  // In the child: lets the parent's wait_for_signal return.
  void signal() const {
    if (::write(pipe_.write.get(), "x", 1) != 1) ::_exit(2);
  }
  // In the parent; false when the child ended without a signal.
  bool wait_for_signal() const {
    char byte;
    return ::read(pipe_.read.get(), &byte, 1) == 1;
  }
  pid_t pid() const { return pid_; }
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  // The exit status, or -1 if a signal killed the child.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  Pipe pipe_;
  pid_t pid_;
};

}  // namespace assay::testing
