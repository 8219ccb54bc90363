// Passes an open file to another process over a socket pair. Neither process needs any right over
// the other.
#pragma once

#include <sys/socket.h>

#include <cstring>

#include "util/fd.h"

namespace assay {

// False when it cannot be sent. Async-signal-safe.
inline bool pass_descriptor(int socket, int fd) {
  char byte = 0;
  iovec text{&byte, sizeof byte};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof byte;
}

// The file that was passed; an empty Fd if none is waiting. Does not block.
inline Fd take_descriptor(int socket) {
  char byte;
  iovec text{&byte, sizeof byte};
  int fd = -1;
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  if (::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != sizeof byte) return {};
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return {};
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return Fd(fd);
}

}  // namespace assay
