#include "serve/http_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "assay/error.h"
#include "serve/connection.h"
#include "serve/limits.h"

namespace assay::serve {
namespace {

// Each connection holds a thread while it is open, and long polls stay open for long.
constexpr std::size_t kThreads = 256;
constexpr std::size_t kLongestPath = 200;

HttpRequest request_from(const httplib::Request& received) {
  HttpRequest request{.method = received.method == "HEAD" ? "GET" : received.method,
                      .path = received.path,
                      .content_type = received.get_header_value("Content-Type"),
                      .authorization = received.get_header_value("Authorization"),
                      .host = received.get_header_value("Host"),
                      .body = received.body,
                      .address = received.remote_addr};
  for (const auto& [key, value] : received.params) request.query.emplace(key, value);
  return request;
}

void send(const HttpAnswer& answer, httplib::Response& response) {
  response.status = answer.status;
  if (answer.body.empty()) return;
  response.set_content(answer.body, answer.content_type);
  for (const auto& [key, value] : answer.headers) response.set_header(key, value);
}

// Refusals by the library itself have no body yet.
HttpAnswer refusal_of_library(int status) {
  switch (status) {
    case 413:
      return refusal(status, "too_large",
                     fmt::format("a body has at most {} MiB", kLargestBody >> 20));
    case 404: return refusal(405, "wrong_method", "this server takes GET, POST and DELETE");
    case 414: return refusal(status, "too_long", "the address is too long");
    default: return refusal(status, "bad_request", "no request that HTTP knows");
  }
}

// Answers that need no body. A body is read only if its length is known and it is not compressed:
// the library enforces its limit on nothing else.
std::optional<HttpAnswer> answer_without_body(Api& api, const httplib::Request& received) {
  // Routes are regular expressions, which recurse with every character.
  if (received.path.size() > kLongestPath)
    return refusal(414, "too_long", "the address is too long");
  // The library cuts ranges out of every answer, as many as are asked for. An empty one has none.
  if (received.has_header("Range")) return HttpAnswer{416, "", "", {}};
  if (auto refused = api.refuse_entry(request_from(received))) return refused;
  if (received.has_header("Content-Encoding"))
    return refusal(415, "encoded", "send the body as it is, without Content-Encoding");
  const bool reads = received.method != "GET" && received.method != "HEAD";
  if (received.has_header("Transfer-Encoding") ||
      (reads && received.method != "DELETE" && !received.has_header("Content-Length")))
    return refusal(411, "no_length", "send the header Content-Length");
  // The library would wait for all of it before it refuses.
  if (received.get_header_value<std::uint64_t>("Content-Length") > kLargestBody)
    return refusal_of_library(413);
  // Otherwise the library would read until the connection closes.
  if (reads && !received.has_header("Content-Length")) return api.answer(request_from(received));
  return std::nullopt;
}

void set_options(socket_t socket) {
  // Without SO_REUSEPORT, which the library would set: it would let two servers share a port.
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

}  // namespace

struct HttpServer::Impl {
  // A connection is for one request: the library would parse a body that was not read, such as that
  // of a refused request or of a GET, as the next one.
  class Server final : public httplib::Server {
    bool process_and_close_socket(socket_t socket) override {
      Connection connection{Fd(socket)};
      bool closed = false;
      return process_request(connection, true, closed, nullptr);
    }
  };

  Server server;
  std::thread thread;
  std::atomic<bool> ended{false};
};

HttpServer::HttpServer(Api& api) : impl_(std::make_unique<Impl>()) {
  httplib::Server& server = impl_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_socket_options(set_options);
  server.set_payload_max_length(kLargestBody);
  server.set_tcp_nodelay(true);
  server.set_pre_routing_handler([&api](const auto& received, auto& response) {
    const auto answered = answer_without_body(api, received);
    if (!answered) return httplib::Server::HandlerResponse::Unhandled;
    send(*answered, response);
    return httplib::Server::HandlerResponse::Handled;
  });
  const auto handle = [&api](const httplib::Request& received, httplib::Response& response) {
    send(api.answer(request_from(received)), response);
  };
  constexpr const char* kAny = R"([\s\S]*)";
  server.Get(kAny, handle);
  server.Post(kAny, handle);
  server.Put(kAny, handle);
  server.Patch(kAny, handle);
  server.Delete(kAny, handle);
  server.Options(kAny, handle);
  const httplib::Server::Handler refuse = [](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty() && response.status != 416)
      send(refusal_of_library(response.status), response);
  };
  server.set_error_handler(refuse);
}

HttpServer::~HttpServer() { stop(); }

int HttpServer::listen(const std::string& host, int port) {
  httplib::Server& server = impl_->server;
  errno = 0;
  const int bound =
      port == 0 ? server.bind_to_any_port(host) : (server.bind_to_port(host, port) ? port : -1);
  if (bound <= 0) {
    throw Error(fmt::format("cannot listen on {}:{}{}: name another with --host and --port", host,
                            port, errno == 0 ? "" : fmt::format(" ({})", std::strerror(errno))));
  }
  impl_->thread = std::thread([this] {
    impl_->server.listen_after_bind();
    impl_->ended = true;
  });
  while (!server.is_running() && !impl_->ended) std::this_thread::yield();
  return bound;
}

void HttpServer::stop() {
  impl_->server.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace assay::serve
