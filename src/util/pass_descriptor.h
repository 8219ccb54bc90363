// Passes open files to another process over a socket pair. Neither process needs any right over the
// other. All but take_descriptor() is async-signal-safe.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "util/fd.h"
#include "util/transient_fault.h"

namespace assay {

// Of one message.
inline constexpr std::size_t kMostPassed = 64;

// Sends at least one byte, and at most kMostPassed descriptors with it. False, with errno, when
// they cannot be sent.
inline bool pass_descriptors(int socket, std::span<const std::byte> bytes,
                             std::span<const int> descriptors) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostPassed * sizeof(int))> room{};
  iovec text{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  ssize_t n;
  do {
    n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(bytes.size());
}

struct Passed {
  std::size_t bytes = 0;        // 0: nothing was received
  std::size_t descriptors = 0;  // closed on exec; the receiver's to close
  bool whole = true;            // false: there was no room for a part of the message
};

// Receives one message into `bytes` and `descriptors`, which are at most kMostPassed. `flags` are
// those of recvmsg(2).
inline Passed receive_descriptors(int socket, std::span<std::byte> bytes,
                                  std::span<int> descriptors, int flags = 0) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostPassed * sizeof(int))> room{};
  iovec text{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = CMSG_LEN(descriptors.size_bytes());
  ssize_t n;
  do {
    n = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  Passed passed;
  if (n <= 0) return passed;
  passed.bytes = static_cast<std::size_t>(n);
  passed.whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return passed;
  passed.descriptors = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  std::memcpy(descriptors.data(), CMSG_DATA(header), passed.descriptors * sizeof(int));
  return passed;
}

// One descriptor. False when it cannot be sent.
inline bool pass_descriptor(int socket, int fd) {
  const std::byte byte{};
  return pass_descriptors(socket, {&byte, 1}, {&fd, 1});
}

// The descriptor that was passed; an empty Fd if none is waiting. Does not block. Throws
// TransientFault if this process may open no more files: then the descriptor is lost.
inline Fd take_descriptor(int socket) {
  std::byte byte{};
  int fd = -1;
  const Passed passed = receive_descriptors(socket, {&byte, 1}, {&fd, 1}, MSG_DONTWAIT);
  if (passed.bytes > 0 && passed.descriptors == 0)
    throw_errno("cannot take an open file from another process", EMFILE);
  return Fd(fd);
}

}  // namespace assay
