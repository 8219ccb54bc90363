// An endpoint that plays a script, and a clock on which nothing takes time.
#pragma once

#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ask/requester.h"
#include "assay/error.h"

namespace assay::testing {

struct Step {
  ask::Delivery delivery = ask::Delivery::whole;
  int status = 200;
  std::string body{};
  std::string type = "application/json";
  std::string retry_after{};
  std::string problem{};
};

inline std::string completion(const std::string& content, const std::string& why = "stop") {
  nlohmann::json json;
  json["choices"][0]["message"]["content"] = content;
  json["choices"][0]["finish_reason"] = why;
  json["usage"] = {{"prompt_tokens", 10}, {"completion_tokens", 3}};
  return json.dump();
}
inline Step says(const std::string& content) { return {.body = completion(content)}; }

// Plays the steps in turn and refuses any later request with 400.
class ScriptedTransport : public ask::Transport {
 public:
  explicit ScriptedTransport(std::vector<Step> steps) : steps_(std::move(steps)) {}

  ask::HttpResponse post(const ask::HttpRequest& request, const OnBytes& on_bytes) override {
    Step step{.status = 400, .body = "unexpected"};
    {
      const std::lock_guard lock(mutex_);
      requests.push_back(request);
      if (requests.size() <= steps_.size()) step = steps_[requests.size() - 1];
    }
    if (before) before(nlohmann::json::parse(request.body));
    ask::HttpResponse response;
    response.status = step.status;
    response.content_type = step.type;
    response.retry_after = step.retry_after;
    try {
      if (!step.body.empty()) on_bytes(response, step.body);
      response.delivery = step.delivery;
      response.problem = step.problem;
    } catch (const Error& e) {
      response.delivery = ask::Delivery::refused;
      response.problem = e.what();
    }
    return response;
  }

  nlohmann::json body(std::size_t i) const { return nlohmann::json::parse(requests.at(i).body); }

  std::vector<ask::HttpRequest> requests;
  std::function<void(const nlohmann::json&)> before;

 private:
  std::vector<Step> steps_;
  std::mutex mutex_;
};

class VirtualClock : public ask::AskClock {
 public:
  double now() override { return time; }
  void sleep(double seconds) override {
    slept.push_back(seconds);
    time += seconds;
  }
  double jitter() override { return 1; }
  double time = 100;
  std::vector<double> slept;
};

}  // namespace assay::testing
