// One accepted connection of the HTTP server, for one request. The library's own stream reads heads
// of any size, and waits for each byte anew, so a few slow clients could hold every thread.
#pragma once

#include <httplib.h>

#include <array>
#include <cstddef>
#include <string>

#include "util/fd.h"

namespace assay::serve {

struct ConnectionLimits {
  std::size_t head_bytes = 64 << 10;  // of the request line and the headers
  double head_seconds = 10;           // until they are there
  double body_seconds = 10;           // of a body without progress
  double request_seconds = 300;       // until the body is there too
  double write_seconds = 10;          // without progress
  double close_seconds = 2;           // for the client to read the answer and close
};

// Reads fail once a limit is reached, and where they would wait although a stop is requested.
class Connection final : public httplib::Stream {
 public:
  explicit Connection(Fd socket, ConnectionLimits limits = {});
  // Ends the answer, and reads what the client still sends, so that closing does not discard the
  // answer on its way.
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* ptr, size_t size) override;
  ssize_t write(const char* ptr, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_.get(); }

 private:
  bool wait_to_read(double until) const;
  double read_deadline() const;
  void follow_head(const char* ptr, std::size_t size);
  bool in_head() const { return end_of_head_ < 3; }

  Fd socket_;
  const ConnectionLimits limits_;
  const double begun_;
  std::array<char, 4096> buffer_;
  double last_read_;
  std::size_t at_ = 0, filled_ = 0;  // in the buffer
  std::size_t head_ = 0;             // bytes of the head so far
  int end_of_head_ = 0;              // how much of "\n\r\n" was read last
};

}  // namespace assay::serve
