// A service that grades answers by a script, and requests to it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "assay/error.h"
#include "cases/fake_world.h"
#include "serve/service.h"
#include "serve/task_store.h"
#include "support/temporary_folder.h"
#include "util/stop.h"

namespace assay::serve::testing {

inline std::vector<ChallengeSpec> copying_specs() {
  return {assay::testing::spec_with({assay::testing::case_spec("plain")})};
}

inline Json request_for(const std::string& source, const std::string& client = "") {
  Json request{{"challenge", "copying"}, {"files", {{"submission.cpp", source}}}};
  if (!client.empty()) request["client"] = client;
  return request;
}

// The output of `assay grade --json`, as far as the service reads it.
inline Json graded(const std::string& verdict = "OK") {
  const Json counted{
      {"passed", verdict == "OK" ? 1 : 0}, {"run", 1}, {"asked", 1}, {"of", 1}, {"share", 1.0}};
  const Json none{{"passed", 0}, {"run", 0}, {"asked", 0}, {"of", 0}, {"share", nullptr}};
  return {{"verdict", verdict},
          {"compiled", verdict != "CE"},
          {"build_log", "the log"},
          {"built_before", false},
          {"capped", false},
          {"stages", Json::array({{{"name", "build"}, {"status", "passed"}, {"seconds", 0.2}},
                                  {{"name", "core"}, {"status", "not_run"}, {"seconds", 0}}})},
          {"passed", {{"core", counted}, {"edge", none}, {"trap", none}}},
          {"findings", Json::array()},
          {"dimensions", {{"performance", {{"points", 10}, {"max", 20}, {"why", ""}}}}},
          {"log_speed_over_naive", 0.5},
          {"log_speed_over_par", nullptr},
          {"harness_faults", Json::array()}};
}

// Grades finish when the test says so; until then they keep running.
class ScriptedGrade {
 public:
  Json operator()(const GradeRequest& request) {
    std::unique_lock lock(mutex_);
    begun_.push_back(request.answer.sources.front().contents);
    changed_.notify_all();
    while (held_) {
      changed_.wait_for(lock, std::chrono::milliseconds(5));
      check_stop();
    }
    if (!fault_.empty()) throw Error(fault_);
    return result_;
  }
  void hold() {
    set([&] { held_ = true; });
  }
  void let_go() {
    set([&] { held_ = false; });
  }
  void give(const Json& result) {
    set([&] { result_ = result; });
  }
  void fail(const std::string& fault) {
    set([&] { fault_ = fault; });
  }
  // In the order in which they began.
  std::vector<std::string> begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  void wait_for_begun(std::size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= n; });
  }

 private:
  template <class Change>
  void set(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  Json result_ = graded();
  std::string fault_;
  std::vector<std::string> begun_;
};

// Long enough for any machine: nothing here takes a second.
inline constexpr double kPatience = 60;

struct RunningService {
  explicit RunningService(const std::filesystem::path& state, ServiceSettings settings = {},
                          bool grades = true)
      : store(state),
        service(
            store, specs, metrics,
            [this](const GradeRequest& request, const auto& on_stage) {
              on_stage(check::Stage::build);
              return grade(request);
            },
            std::move(settings)) {
    if (grades) service.start();
  }

  std::string submit(const Json& request, const std::string& who = "here") {
    return service.submit({request}, who).front();
  }
  Json ended(const std::string& id) { return service.wait(id, kPatience); }

  std::vector<ChallengeSpec> specs = copying_specs();
  TaskStore store;
  Metrics metrics;
  ScriptedGrade grade;
  Service service;
};

}  // namespace assay::serve::testing
