#include "compare/pass_at_k.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "assay/error.h"
#include "assay/random.h"
#include "compare/bootstrap.h"

namespace assay::compare {
namespace {

struct Count {
  std::size_t n = 0, c = 0;
};

double mean_pass(const std::vector<Count>& counts, std::size_t k) {
  double sum = 0;
  for (const Count& count : counts) sum += pass_at_k(count.n, count.c, k);
  return sum / static_cast<double>(counts.size());
}

std::optional<Interval> drawn_interval(const std::vector<Count>& counts, std::size_t k,
                                       double value) {
  if (std::ranges::none_of(counts, [&](const Count& c) { return c.n > k; })) return {};
  // Draws from attempts that all ended alike are all alike, and know nothing of chance.
  if (value == 0 || value == 1) {
    double attempts = 0;
    for (const Count& c : counts) attempts += static_cast<double>(c.n);
    const auto at_least_once = [&](double p) {
      return 1 - std::pow(1 - p, static_cast<double>(k));
    };
    const Interval one = wilson(value * attempts, attempts);
    return Interval{at_least_once(one.low), at_least_once(one.high)};
  }
  std::uint64_t seed = k;
  for (const Count& c : counts) seed = mix64(mix64(seed ^ c.n) ^ c.c);
  Random random(seed);
  std::vector<double> means(kBootstrapDraws);
  std::vector<Count> drawn = counts;
  for (double& m : means) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      drawn[i].c = 0;
      for (std::size_t a = 0; a < counts[i].n; ++a) {
        const auto which = random.below(static_cast<std::int64_t>(counts[i].n));
        drawn[i].c += static_cast<std::size_t>(which) < counts[i].c ? 1 : 0;
      }
    }
    m = mean_pass(drawn, k);
  }
  constexpr double kLow = 0.025, kHigh = 0.975;
  return Interval{std::min(value, quantile(means, kLow)), std::max(value, quantile(means, kHigh))};
}

std::optional<double> threshold_in(const std::string& text) {
  constexpr std::string_view kScore = "score>=";
  if (!text.starts_with(kScore)) return {};
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + kScore.size(), end, value);
  if (error != std::errc() || stop != end || !(value >= 0 && value <= 100)) {
    throw Error(fmt::format("'{}': a score is a number from 0 to 100, as in score>=80", text));
  }
  return value;
}

}  // namespace

Goal goal_from(const std::string& text) {
  if (text == "correct") return {text, &is_correct};
  if (text == "built") return {text, &was_built};
  if (text == "core")
    return {text, [](const BoardRow& row) { return was_built(row) && !row.score.capped; }};
  if (const auto least = threshold_in(text)) {
    return {text, [least](const BoardRow& row) { return row.score.total.value_or(-1) >= *least; }};
  }
  if (const auto verdict = verdict_from_code(text)) {
    return {text, [verdict](const BoardRow& row) { return row.score.verdict == *verdict; }};
  }
  throw Error(
      fmt::format("unknown goal '{}': name correct, built, core, a verdict such as WA, or a "
                  "score such as score>=80",
                  text));
}

double pass_at_k(std::size_t n, std::size_t c, std::size_t k) {
  if (k < 1 || k > n || c > n) throw std::invalid_argument("pass@k of impossible counts");
  if (n - c < k) return 1;
  double none = 1;  // C(n - c, k) / C(n, k), as a product that cannot overflow
  for (std::size_t i = n - c + 1; i <= n; ++i)
    none *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - none;
}

std::optional<PassRate> pass_rate(const Player& player, const Goal& goal, std::size_t k) {
  PassRate rate;
  std::vector<Count> counts;
  for (const Cell& cell : player.cells) {
    if (cell.count() == 0) continue;
    if (cell.count() < k) {
      ++rate.left_out;
      continue;
    }
    Count& count = counts.emplace_back();
    count.n = cell.count();
    for (const BoardRow* row : cell.graded) count.c += goal.reached(*row) ? 1 : 0;
    rate.attempts += count.n;
    rate.solved += count.c;
  }
  if (counts.empty()) return {};
  rate.challenges = counts.size();
  rate.value = mean_pass(counts, k);
  if (k > 1) {
    rate.interval = drawn_interval(counts, k, rate.value);
    return rate;
  }
  // As if all attempts succeeded at the mean rate over challenges.
  const auto attempts = static_cast<double>(rate.attempts);
  rate.interval = wilson(rate.value * attempts, attempts);
  return rate;
}

std::size_t solved_challenges(const Player& player, const Goal& goal) {
  return static_cast<std::size_t>(std::ranges::count_if(player.cells, [&](const Cell& cell) {
    return std::ranges::any_of(cell.graded,
                               [&](const BoardRow* row) { return goal.reached(*row); });
  }));
}

std::size_t attempted_challenges(const Player& player) {
  return static_cast<std::size_t>(
      std::ranges::count_if(player.cells, [](const Cell& cell) { return cell.count() > 0; }));
}

}  // namespace assay::compare
