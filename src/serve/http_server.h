// The interface on a socket.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "serve/api.h"

namespace assay::serve {

class HttpServer {
 public:
  // Answers from listen() on. The API must outlive it.
  explicit HttpServer(Api&);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds, and answers in threads of its own. Port 0: the kernel chooses. Returns the port; throws
  // Error where the address cannot be had.
  int listen(const std::string& host, int port);
  // Answers those who are being answered, and returns when no thread is left.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::serve
