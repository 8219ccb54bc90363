// Decides whether to retry after a failure: a pure function of the fault.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "ask/http.h"

namespace assay::ask {

struct RetryPolicy {
  unsigned retries = 6;        // after the first try
  double first_wait = 1;       // seconds, then doubled each time
  double longest_wait = 60;    // upper limit of those
  double longest_asked = 600;  // longest pause an endpoint may ask for, in seconds
};

struct Fault {
  enum class Kind : std::uint8_t {
    unreachable,  // no connection
    insecure,     // TLS
    timed_out,
    cut,      // only part of a reply arrived
    damaged,  // the bytes are not a valid reply
    status,   // an HTTP status other than 200
    refused,  // could not be sent, or the reply is too large
  };
  Kind kind = Kind::cut;
  int status = 0;
  std::string message;                  // one line, safe to print
  std::optional<double> retry_after{};  // seconds, as the endpoint asked
};

// Whether the same request may succeed later. `was_reached`: the endpoint has responded before, so
// its address is right.
bool is_passing(const Fault&, bool was_reached);

// Whether every other request would fail too: a wrong key, an unknown model, no server.
bool concerns_all(const Fault&);

// Seconds to wait before the next try after `failures` failed tries; nothing if there is no next
// try. `jitter` in [0, 1) spreads out requests that failed together.
std::optional<double> wait_before_retry(const RetryPolicy&, const Fault&, unsigned failures,
                                        bool was_reached, double jitter);

// The header Retry-After (RFC 9110, 10.2.3), seconds or a date, as seconds from `now`; nothing if
// it is neither.
std::optional<double> retry_after_seconds(const std::string& header, std::time_t now);

}  // namespace assay::ask
