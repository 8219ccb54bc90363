#include "processes/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "util/transient_fault.h"

namespace assay::processes {
namespace {

// 0 when nothing is waiting.
std::size_t receive(int fd, char* to, std::size_t bytes) {
  ssize_t n;
  do {
    n = ::recv(fd, to, bytes, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

}  // namespace

Channel::Channel(int flags) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw_errno("cannot make a pair of sockets");
  }
  ours_ = Fd(ends[0]);
  theirs_ = Fd(ends[1]);
  if (flags != 0 && ::fcntl(theirs_.get(), F_SETFL, flags) != 0) {
    throw_errno("cannot set up a socket");
  }
}

bool Channel::send(char byte) const {
  ssize_t n;
  do {
    n = ::send(ours_.get(), &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n == sizeof byte;
}

std::size_t Channel::take(std::size_t most) const {
  std::array<char, 64> bytes;
  return receive(ours_.get(), bytes.data(), std::min(most, bytes.size()));
}

void Channel::take(std::string& text, std::size_t most) const {
  std::array<char, 4096> bytes;
  while (most > 0) {
    const std::size_t n = receive(ours_.get(), bytes.data(), std::min(most, bytes.size()));
    if (n == 0) return;
    text.append(bytes.data(), n);
    most -= n;
  }
}

}  // namespace assay::processes
