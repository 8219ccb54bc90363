#include "site/pages/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include "report/figures.h"

namespace assay::site {

const char* device_words(Device device) {
  switch (device) {
    case Device::cpu: return "C++ on the CPU";
    case Device::sim: return "CUDA on the simulated GPU";
    case Device::cuda: return "CUDA on a real GPU";
  }
  return "";
}

const char* device_note(Device device) {
  switch (device) {
    case Device::cpu:
      return "Speeds are measured, between a plain and an expert implementation in the same run.";
    case Device::sim:
      return "The PTX that nvcc made, executed and checked by the simulator: speeds are modelled "
             "from exact counts, never measured.";
    case Device::cuda:
      return "Speeds are measured on one kind of GPU, between a plain and an expert kernel in the "
             "same run.";
  }
  return "";
}

std::string grade_class(const Score& s) { return grade_class(s.letter); }

std::string grade_class(const std::string& letter) {
  return letter.empty() ? "grade none" : std::string("grade g") + letter[0];
}

std::string verdict_class(Verdict v) {
  if (v == Verdict::ok) return "v ok";
  return !was_run(v) || v == Verdict::unsupported || v == Verdict::harness_error ? "v none"
                                                                                 : "v bad";
}

std::string correctness_text(const Score& s) {
  const Dimension* d = report::dimension(s, "correctness");
  if (d == nullptr) return "";
  return report::points_of(*d);
}

int dimension_series(const std::string& name) {
  constexpr std::array<std::string_view, 6> kNames{"correctness", "accuracy",     "performance",
                                                   "resources",   "completeness", "tests"};
  const auto at = std::ranges::find(kNames, name);
  return at == kNames.end() ? 6 : static_cast<int>(at - kNames.begin());
}

ChartAxis score_axis() { return linear_axis(0, 100, 4); }

double middle_of(std::span<const double> values) {
  if (values.empty()) return 0;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double low = sorted[(sorted.size() - 1) / 2], high = sorted[sorted.size() / 2];
  return std::isfinite(high) ? std::midpoint(low, high) : low;
}

}  // namespace assay::site
