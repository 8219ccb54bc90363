#include "compare/bootstrap.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "assay/random.h"

namespace assay::compare {
namespace {

using Cells = std::vector<std::vector<Estimate>>;

// The value at quantile u of a score with known 2.5 %, 50 % and 97.5 % points, by linear
// interpolation.
double at_quantile(const Estimate& e, double u) {
  constexpr double kTail = 0.475;
  const double side = u < 0.5 ? e.value - e.interval.low : e.interval.high - e.value;
  return e.value + side * (u - 0.5) / kTail;
}

std::uint64_t bootstrap_seed(const Cells& cells) {
  std::uint64_t seed = cells.size();
  const auto take = [&](double v) { seed = mix64(seed ^ std::bit_cast<std::uint64_t>(v)); };
  for (const auto& attempts : cells) {
    take(static_cast<double>(attempts.size()));
    for (const Estimate& e : attempts) {
      take(e.value);
      take(e.interval.low);
      take(e.interval.high);
    }
  }
  return seed;
}

double mean_value(const std::vector<Estimate>& attempts) {
  double sum = 0;
  for (const Estimate& e : attempts) sum += e.value;
  return sum / static_cast<double>(attempts.size());
}

// A bootstrap draw of the mean of the cell's attempts.
double drawn_mean(const std::vector<Estimate>& attempts, double place, Random& random) {
  const std::size_t n = attempts.size();
  if (n == 1) return at_quantile(attempts[0], place);
  double drawn = 0, timing = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Estimate& e = attempts[static_cast<std::size_t>(random.below(static_cast<int64_t>(n)))];
    drawn += e.value;
    timing += at_quantile(e, place) - e.value;
  }
  const double size = static_cast<double>(n), mean = mean_value(attempts);
  return mean + (drawn / size - mean) * std::sqrt(size / (size - 1)) + timing / size;
}

}  // namespace

Estimate mean_over_cells(const Cells& all) {
  Cells cells;
  std::ranges::copy_if(all, std::back_inserter(cells), [](const auto& c) { return !c.empty(); });
  if (cells.empty()) throw std::invalid_argument("a mean over no attempts");
  const double count = static_cast<double>(cells.size());
  Estimate result;
  bool several = false;
  for (const auto& attempts : cells) {
    several = several || attempts.size() > 1;
    result.value += mean_value(attempts) / count;
    result.interval.low += attempts[0].interval.low / count;
    result.interval.high += attempts[0].interval.high / count;
  }
  if (!several) return result;
  Random random(bootstrap_seed(cells));
  std::vector<double> means(kBootstrapDraws);
  for (double& m : means) {
    const double place = random.uniform();
    for (const auto& attempts : cells) m += drawn_mean(attempts, place, random) / count;
  }
  constexpr double kLow = 0.025, kHigh = 0.975;
  result.interval = {std::min(result.value, quantile(means, kLow)),
                     std::max(result.value, quantile(means, kHigh))};
  return result;
}

Estimate difference(const Estimate& a, const Estimate& b) {
  const double value = a.value - b.value;
  const double below = std::hypot(a.value - a.interval.low, b.interval.high - b.value),
               above = std::hypot(a.interval.high - a.value, b.value - b.interval.low);
  return {value, {value - below, value + above}};
}

Interval wilson(double successes, double trials) {
  if (trials <= 0) return {0, 1};
  constexpr double kZ = 1.959963984540054;
  const double p = successes / trials, z2 = kZ * kZ / trials, centre = (p + z2 / 2) / (1 + z2),
               half = std::sqrt(z2 * (p * (1 - p) + z2 / 4)) / (1 + z2);
  return {std::clamp(std::min(centre - half, p), 0.0, 1.0),
          std::clamp(std::max(centre + half, p), 0.0, 1.0)};
}

bool is_above_zero(const Estimate& e) { return e.interval.low > kLeastShown; }

bool is_below_zero(const Estimate& e) { return e.interval.high < -kLeastShown; }

}  // namespace assay::compare
