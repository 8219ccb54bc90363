// Ownership of file descriptors.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "util/transient_fault.h"

namespace assay {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read, write;
};

// Closed on exec. Both ends block: O_NONBLOCK in pipe2's flags would apply to the writer's end too.
inline Pipe make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) throw_errno("cannot make a pipe");
  return {Fd(fds[0]), Fd(fds[1])};
}

// For the output of a program: reads never block. Writes do, so that a program whose output is read
// slowly loses none of it.
inline Pipe make_log_pipe() {
  Pipe log = make_pipe();
  if (::fcntl(log.read.get(), F_SETFL, O_NONBLOCK) != 0) throw_errno("cannot set up a pipe");
  return log;
}

}  // namespace assay
