#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::serve {
namespace {

std::string head(const char* name, const char* kind, const char* help) {
  return fmt::format("# HELP assay_serve_{0} {2}\n# TYPE assay_serve_{0} {1}\n", name, kind, help);
}

// `label` is 'stage="core"', or "".
std::string lines_of(const Histogram& h, const char* name, const std::string& label) {
  std::string text;
  std::uint64_t below = 0;
  const std::string before = label.empty() ? "" : label + ",";
  for (std::size_t i = 0; i < h.counts.size(); ++i) {
    below += h.counts[i];
    const std::string bound =
        i < Histogram::kBounds.size() ? fmt::format("{}", Histogram::kBounds[i]) : "+Inf";
    text += fmt::format("assay_serve_{}_bucket{{{}le=\"{}\"}} {}\n", name, before, bound, below);
  }
  const std::string all = label.empty() ? "" : "{" + label + "}";
  text += fmt::format("assay_serve_{}_sum{} {}\n", name, all, h.sum);
  return text + fmt::format("assay_serve_{}_count{} {}\n", name, all, below);
}

template <class Counts>
std::string counter(const char* name, const char* label, const char* help, const Counts& counts) {
  std::string text = head(name, "counter", help);
  for (const auto& [key, count] : counts)
    text += fmt::format("assay_serve_{}{{{}=\"{}\"}} {}\n", name, label, key, count);
  return text;
}

std::string gauge(const char* name, const char* help, std::size_t value) {
  return head(name, "gauge", help) + fmt::format("assay_serve_{} {}\n", name, value);
}

}  // namespace

void Histogram::add(double seconds) {
  const auto* const bound = std::ranges::lower_bound(kBounds, seconds);
  ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
  sum += seconds;
}

void Metrics::task_ended(const std::string& status) {
  const std::lock_guard lock(mutex_);
  ++tasks_[status];
}

void Metrics::waited(double seconds) {
  const std::lock_guard lock(mutex_);
  waits_.add(seconds);
}

void Metrics::graded(const nlohmann::ordered_json& grade) {
  const std::lock_guard lock(mutex_);
  ++verdicts_[grade.at("verdict").get<std::string>()];
  ++built_[grade.at("built_before").get<bool>() ? "hit" : "miss"];
  for (const auto& stage : grade.at("stages")) {
    if (stage.at("status") != "not_run")
      stages_[stage.at("name").get<std::string>()].add(stage.at("seconds"));
  }
}

void Metrics::looked_up(bool hit) {
  const std::lock_guard lock(mutex_);
  ++(hit ? hits_ : misses_);
}

void Metrics::answered(int http_status) {
  const std::lock_guard lock(mutex_);
  ++answers_[http_status];
}

std::string Metrics::text(std::size_t queued, std::size_t running, std::size_t jobs) const {
  const std::lock_guard lock(mutex_);
  std::string text = gauge("queued_tasks", "Tasks that wait.", queued) +
                     gauge("running_tasks", "Tasks that are graded now.", running) +
                     gauge("jobs", "Tasks that may be graded at once.", jobs);
  text += counter("tasks_total", "status", "Tasks that ended, by how.", tasks_);
  text += counter("verdicts_total", "verdict", "Grades that were made, by verdict.", verdicts_);
  text += counter("builds_total", "cache", "Grades that were made, by whether it was built before.",
                  built_);
  text += counter("results_total", "cache", "Look-ups in the cache of results.",
                  std::map<std::string, std::uint64_t>{{"hit", hits_}, {"miss", misses_}});
  text += counter("responses_total", "code", "Answers over HTTP, by status.", answers_);
  text += head("wait_seconds", "histogram", "From a task's arrival until it ran.");
  text += lines_of(waits_, "wait_seconds", "");
  text += head("stage_seconds", "histogram", "What stages of grades took.");
  for (const auto& [stage, histogram] : stages_)
    text += lines_of(histogram, "stage_seconds", fmt::format("stage=\"{}\"", stage));
  return text;
}

}  // namespace assay::serve
