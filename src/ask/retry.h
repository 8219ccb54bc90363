// When to ask again after a failure, and when not: a pure function of what went wrong.
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
  double longest_wait = 60;    // of those
  double longest_asked = 600;  // seconds that an endpoint may ask to be left alone
};

struct Fault {
  enum class Kind : std::uint8_t {
    unreachable,  // no connection
    insecure,     // TLS
    timed_out,
    cut,      // a part of a reply
    damaged,  // bytes that are no reply
    status,   // an answer of HTTP that is not 200
    refused,  // could not be sent, or the reply is too large
  };
  Kind kind = Kind::cut;
  int status = 0;
  std::string message;                  // one line, safe to print
  std::optional<double> retry_after{};  // seconds, as the endpoint asked
};

// Whether the same request may succeed later. `was_reached`: the endpoint gave some response
// before, so that its name is right and it was there.
bool is_passing(const Fault&, bool was_reached);

// Whether every other request would fail as well: a wrong key, a model that does not exist, nobody
// there.
bool concerns_all(const Fault&);

// Seconds to wait before the next try after `failures` of them, nothing when there is none.
// `jitter` in [0, 1) spreads those who failed together.
std::optional<double> wait_before_retry(const RetryPolicy&, const Fault&, unsigned failures,
                                        bool was_reached, double jitter);

// The header Retry-After (RFC 9110, 10.2.3), seconds or a date, as seconds from `now`; nothing when
// it is neither.
std::optional<double> retry_after_seconds(const std::string& header, std::time_t now);

}  // namespace assay::ask
