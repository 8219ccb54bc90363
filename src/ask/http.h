// A minimal HTTP request; the transport is an interface, so that tests can script the server.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::ask {

struct Header {
  std::string name, value;
};

struct HttpRequest {
  std::string url;
  std::vector<Header> headers;  // some of them secret: never written, never shown
  std::string body;
  double timeout = 0;  // seconds for the whole request
};

// How far the transfer got. Everything that arrived was handed over in any case.
enum class Delivery {
  whole,        // the response is complete
  unreachable,  // no connection: unknown host, refused, no route
  insecure,     // the server could not be authenticated (TLS)
  timed_out,    // within HttpRequest::timeout
  cut,          // the connection ended before the response did
  refused,      // by the receiver of the bytes, or the request could not be sent
};

struct HttpResponse {
  Delivery delivery = Delivery::cut;
  std::string problem;                              // in words, unless whole
  int status = 0;                                   // 0: no status line arrived
  std::string content_type, retry_after, location;  // headers, "" when absent
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Called with the bytes of the body as they arrive, and the status and headers known so far. An
  // Error that it throws aborts the transfer: Delivery::refused, with its text.
  using OnBytes = std::function<void(const HttpResponse&, std::string_view)>;

  // POST. Throws Stopped (util/stop.h) soon after a stop request, and nothing else. Thread-safe.
  virtual HttpResponse post(const HttpRequest&, const OnBytes&) = 0;
};

}  // namespace assay::ask
