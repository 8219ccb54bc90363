// Sends one request until it has a reply or has finally failed. Handles headers, the key (which is
// never stored), retries, and pauses that an endpoint asks for. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ask/chat.h"
#include "ask/http.h"
#include "ask/retry.h"
#include "util/redact.h"

namespace assay::ask {

// The endpoint and how to ask it.
struct Endpoint {
  std::string url;  // completions_url()
  std::string key, key_variable;
  std::vector<Header> headers;  // additional headers
  ChatSettings chat;            // `seed` is the first sample's; each next one adds 1
  double timeout = 1800;        // seconds per request
  RetryPolicy retry;
};

// Everything that determines a reply, except messages and chance. Holds no secret.
nlohmann::ordered_json settings_of(const Endpoint&);

class AskClock {
 public:
  virtual ~AskClock() = default;
  virtual double now() = 0;                // seconds
  virtual void sleep(double seconds) = 0;  // throws Stopped
  virtual double jitter() = 0;             // in [0, 1)
};

// The request finally failed.
struct RequestFailed {
  Fault fault;
  std::string message;  // includes the remedy
};

// Totals over all requests so far.
struct Spent {
  std::size_t replies = 0, failures = 0, replies_without_usage = 0;
  std::int64_t tokens_in = 0, tokens_out = 0;
  double seconds = 0;  // sum of the replies' durations
};

struct Answered {
  Reply reply;
  double seconds = 0;  // of the request that succeeded
};

class Requester {
 public:
  // `note` is called for every wait. All arguments must outlive this.
  Requester(const Endpoint&, Transport&, AskClock&,
            std::function<void(const std::string& line)> note);

  // Called after each try without a reply; `wait` is absent if there is no further try.
  using OnFailure = std::function<void(const Fault&, double seconds, std::optional<double> wait)>;

  // `name` tells people what is requested. Throws RequestFailed, Stopped, and whatever `failed`
  // throws.
  Answered ask(const nlohmann::ordered_json& body, const std::string& name,
               const OnFailure& failed);

  Spent spent() const;

 private:
  std::optional<Fault> attempt(const HttpRequest&, Reply&);
  Fault fault_of(const HttpResponse&, const std::string& body, const ReplyReader&);
  void wait_for_gate();
  std::string without_key(std::string text) const;

  const Endpoint& endpoint_;
  Transport& transport_;
  AskClock& clock_;
  std::function<void(const std::string&)> note_;
  Redactor secrets_;
  std::string sent_secret_;

  mutable std::mutex mutex_;  // guards everything below
  Spent spent_;
  bool reached_ = false;   // the endpoint has responded before
  double not_before_ = 0;  // earliest time of the next request
};

}  // namespace assay::ask
