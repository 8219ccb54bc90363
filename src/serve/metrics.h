// The service's counters, in Prometheus text format.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

namespace assay::serve {

// Of seconds; the last bucket has no upper bound.
struct Histogram {
  static constexpr std::array kBounds{0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0};
  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  double sum = 0;

  void add(double seconds);
};

// Thread-safe.
class Metrics {
 public:
  void task_ended(const std::string& status);
  void waited(double seconds);  // from arrival until it ran
  // For a grade made just now: its verdict, its stages with their seconds, whether the build was
  // cached.
  void graded(const nlohmann::ordered_json& grade);
  void looked_up(bool hit);  // in the cache of results
  void answered(int http_status);

  // `queued` and `running`: numbers of tasks now; `jobs`: how many may run at once.
  std::string text(std::size_t queued, std::size_t running, std::size_t jobs) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> tasks_, verdicts_, built_;
  std::map<int, std::uint64_t> answers_;
  std::map<std::string, Histogram> stages_;
  Histogram waits_;
  std::uint64_t hits_ = 0, misses_ = 0;
};

}  // namespace assay::serve
