// One HTTP request, as far as asking needs it; what sends it is an interface, so that tests script
// the other side.
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
  double timeout = 0;  // seconds for all of it
};

// How far it came. What arrived until then was handed over in any case.
enum class Delivery {
  whole,        // the response is complete
  unreachable,  // no connection: unknown host, refused, no route
  insecure,     // the server is not who it should be (TLS)
  timed_out,    // within HttpRequest::timeout
  cut,          // the connection ended before the response did
  refused,      // by the receiver of the bytes, or the request could not be made
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

  // Is given the bytes of the body as they arrive, with the response as far as it is known: status
  // and headers. An Error that it throws ends the transfer: Delivery::refused, with its text.
  using OnBytes = std::function<void(const HttpResponse&, std::string_view)>;

  // POST. Throws Stopped (util/stop.h) soon after the end was asked for, and nothing else. May be
  // called by several threads at once.
  virtual HttpResponse post(const HttpRequest&, const OnBytes&) = 0;
};

}  // namespace assay::ask
