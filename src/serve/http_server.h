// The interface on a TCP socket.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "serve/api.h"

namespace assay::serve {

class HttpServer {
 public:
  // Answers requests once listen() is called. The API must outlive it.
  explicit HttpServer(Api&);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Binds, and answers in its own threads. Port 0: the kernel chooses. Returns the port; throws
  // Error if the address is unavailable.
  int listen(const std::string& host, int port);
  // Completes the requests in progress, and returns when no thread is left.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::serve
