#include "serve/connection.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "util/clock.h"
#include "util/stop.h"

namespace assay::serve {
namespace {

void name_of(const sockaddr_storage& address, socklen_t length, std::string& ip, int& port) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(),
                    service.data(), service.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  ip = host.data();
  std::from_chars(service.data(), service.data() + std::strlen(service.data()), port);
}

}  // namespace

Connection::Connection(Fd socket, ConnectionLimits limits)
    : socket_(std::move(socket)), limits_(limits), begun_(steady_seconds()), last_read_(begun_) {}

Connection::~Connection() {
  if (::shutdown(socket_.get(), SHUT_WR) != 0) return;
  const double until = steady_seconds() + limits_.close_seconds;
  std::array<char, 65536> discarded;
  while (wait_to_read(until)) {
    const ssize_t n = ::recv(socket_.get(), discarded.data(), discarded.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return;
  }
}

bool Connection::wait_to_read(double until) const {
  for (;;) {
    const double left = until - steady_seconds();
    if (left <= 0) return false;
    std::array<pollfd, 2> files{pollfd{socket_.get(), POLLIN, 0}, pollfd{stop_fd(), POLLIN, 0}};
    const int ready = ::poll(files.data(), files.size(), static_cast<int>(std::ceil(left * 1000)));
    if (ready < 0 && errno != EINTR) return false;
    if (ready > 0) return files[0].revents != 0;
  }
}

double Connection::read_deadline() const {
  if (in_head()) return begun_ + limits_.head_seconds;
  return std::min(begun_ + limits_.request_seconds, last_read_ + limits_.body_seconds);
}

// The head ends with an empty line, as the library sees lines.
void Connection::follow_head(const char* ptr, std::size_t size) {
  for (std::size_t i = 0; i < size && in_head(); ++i, ++head_) {
    if (ptr[i] == '\n') {
      end_of_head_ = end_of_head_ == 2 ? 3 : 1;
    } else {
      end_of_head_ = ptr[i] == '\r' && end_of_head_ == 1 ? 2 : 0;
    }
  }
}

bool Connection::is_readable() const { return at_ < filled_ || wait_to_read(read_deadline()); }

// Answers leave even if a stop is requested.
bool Connection::is_writable() const {
  pollfd file{socket_.get(), POLLOUT, 0};
  return ::poll(&file, 1, static_cast<int>(std::ceil(limits_.write_seconds * 1000))) > 0;
}

ssize_t Connection::read(char* ptr, size_t size) {
  if (head_ >= limits_.head_bytes && in_head()) return -1;
  while (at_ == filled_) {
    if (!wait_to_read(read_deadline())) return -1;
    const ssize_t n = ::recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return n;
    last_read_ = steady_seconds();
    at_ = 0;
    filled_ = static_cast<std::size_t>(n);
  }
  const std::size_t n = std::min(size, filled_ - at_);
  std::memcpy(ptr, buffer_.data() + at_, n);
  at_ += n;
  follow_head(ptr, n);
  return static_cast<ssize_t>(n);
}

ssize_t Connection::write(const char* ptr, size_t size) {
  std::size_t done = 0;
  while (done < size) {
    if (!is_writable()) return -1;
    const ssize_t n = ::send(socket_.get(), ptr + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR && errno != EAGAIN) return n;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0)
    name_of(address, length, ip, port);
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0)
    name_of(address, length, ip, port);
}

}  // namespace assay::serve
