#include "measure/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "assay/random.h"

namespace assay {
namespace {

constexpr int kResamples = 4000;

void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

std::vector<double> sorted(std::span<const double> values) {
  require(!values.empty(), "statistics of no values");
  for (const double v : values) require(!std::isnan(v), "statistics of a NaN");
  std::vector<double> s(values.begin(), values.end());
  std::sort(s.begin(), s.end());
  return s;
}

double sorted_quantile(const std::vector<double>& s, double q) {
  const double at = q * static_cast<double>(s.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, s.size() - 1);
  const double t = at - static_cast<double>(below);
  // Equal neighbours may be infinite.
  return t == 0 || s[below] == s[above] ? s[below] : s[below] + t * (s[above] - s[below]);
}

std::uint64_t seed_of(const std::vector<double>& s) {
  std::uint64_t seed = s.size();
  for (const double v : s) seed = mix64(seed ^ std::bit_cast<std::uint64_t>(v));
  return seed;
}

// Resamples ranks of the sorted values, so that each median is one of integers.
std::vector<double> resampled_medians(const std::vector<double>& s) {
  Random random(seed_of(s));
  const std::size_t n = s.size();
  std::vector<std::size_t> ranks(n);
  std::vector<double> medians(kResamples);
  for (double& m : medians) {
    for (auto& r : ranks) r = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(n)));
    const auto middle = ranks.begin() + static_cast<std::ptrdiff_t>(n / 2);
    std::nth_element(ranks.begin(), middle, ranks.end());
    m = s[*middle];
    if (n % 2 == 0) m = (m + s[*std::max_element(ranks.begin(), middle)]) / 2;
  }
  return medians;
}

}  // namespace

double quantile(std::span<const double> values, double q) {
  require(q >= 0 && q <= 1, "a quantile outside [0, 1]");
  return sorted_quantile(sorted(values), q);
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

double geometric_mean(std::span<const double> values) {
  require(!values.empty(), "geometric mean of no values");
  double sum = 0;
  for (const double v : values) {
    require(v > 0, "geometric mean of a value that is not positive");
    sum += std::log(v);
  }
  return std::exp(sum / static_cast<double>(values.size()));
}

Estimate estimate_median(std::span<const double> values) {
  const std::vector<double> s = sorted(values);
  const double m = sorted_quantile(s, 0.5);
  if (s.size() < 3) return {m, {s.front(), s.back()}};
  const std::vector<double> medians = sorted(resampled_medians(s));
  return {
      m,
      {std::min(m, sorted_quantile(medians, 0.025)), std::max(m, sorted_quantile(medians, 0.975))}};
}

Estimate estimate_ratio(std::span<const double> numerator, std::span<const double> denominator) {
  require(numerator.size() == denominator.size(), "ratios of unpaired values");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < numerator.size(); ++i) {
    require(numerator[i] > 0 && denominator[i] > 0, "a ratio of values that are not positive");
    ratios.push_back(numerator[i] / denominator[i]);
  }
  return estimate_median(ratios);
}

std::vector<TimingSample> calm_rounds(std::span<const TimingSample> samples) {
  std::vector<TimingSample> calm;
  std::ranges::copy_if(samples, std::back_inserter(calm),
                       [](const TimingSample& s) { return s.par && *s.par > 0; });
  if (calm.empty()) return calm;
  std::vector<double> par;
  for (const TimingSample& s : calm) par.push_back(*s.par);
  const double most = kCalm * quantile(par, 0.25);
  std::erase_if(calm, [&](const TimingSample& s) { return *s.par > most; });
  return calm;
}

Interval operator+(Interval a, Interval b) { return {a.low + b.low, a.high + b.high}; }

Interval operator*(double factor, Interval a) { return {factor * a.low, factor * a.high}; }

Interval clamp(Interval a, double low, double high) {
  return {std::clamp(a.low, low, high), std::clamp(a.high, low, high)};
}

bool overlap(Interval a, Interval b) { return a.low <= b.high && b.low <= a.high; }

}  // namespace assay
