// One request until it has a reply, or until it is known that it has none: the headers, the key
// that is never kept, retries, and the pause that an endpoint asks for. Used by several threads at
// once.
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

// Who is asked, and how.
struct Endpoint {
  std::string url;  // completions_url()
  std::string key, key_variable;
  std::vector<Header> headers;  // further ones
  ChatSettings chat;            // `seed` of the first sample; each next has one more
  double timeout = 1800;        // seconds of one request
  RetryPolicy retry;
};

// What decides a reply, but for messages and chance. Holds no secret.
nlohmann::ordered_json settings_of(const Endpoint&);

class AskClock {
 public:
  virtual ~AskClock() = default;
  virtual double now() = 0;                // seconds
  virtual void sleep(double seconds) = 0;  // throws Stopped
  virtual double jitter() = 0;             // in [0, 1)
};

// There is no reply to be had.
struct RequestFailed {
  Fault fault;
  std::string message;  // with the remedy
};

// Of all requests so far.
struct Spent {
  std::size_t replies = 0, failures = 0, replies_without_usage = 0;
  std::int64_t tokens_in = 0, tokens_out = 0;
  double seconds = 0;  // that replies took, one after the other
};

struct Answered {
  Reply reply;
  double seconds = 0;  // of the request that succeeded
};

class Requester {
 public:
  // `note` is told of every wait. All of them must outlive it.
  Requester(const Endpoint&, Transport&, AskClock&,
            std::function<void(const std::string& line)> note);

  // Called after each try that brought no reply; `wait` is absent when there is no other.
  using OnFailure = std::function<void(const Fault&, double seconds, std::optional<double> wait)>;

  // `name` tells people what is asked for. Throws RequestFailed, Stopped, and what `failed` throws.
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

  mutable std::mutex mutex_;  // of all below
  Spent spent_;
  bool reached_ = false;   // the endpoint gave a response
  double not_before_ = 0;  // when it may be asked again
};

}  // namespace assay::ask
