// How often a model solves a challenge, given k attempts.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "compare/field.h"

namespace assay::compare {

// What counts as solved: a name for the command line and tables, and the test.
struct Goal {
  std::string name;
  std::function<bool(const BoardRow&)> reached;
};

// "correct" (verdict OK), "built" (it compiled and loaded), "core" (no core case failed), a
// verdict's code ("WA": the share with that verdict), or "score>=80". Throws Error that lists them.
Goal goal_from(const std::string& text);

// The unbiased estimate of the chance that at least one of k attempts succeeds, given that c of n
// did: 1 - C(n - c, k) / C(n, k) (Chen et al. 2021). REQUIRES 1 <= k <= n, c <= n; throws
// std::invalid_argument.
double pass_at_k(std::size_t n, std::size_t c, std::size_t k);

struct PassRate {
  double value = 0;  // mean over the challenges
  // 95 %. For k = 1 Wilson's, over all attempts together; else from a bootstrap over the attempts
  // of each challenge, absent if no challenge has more than k attempts to draw from.
  std::optional<Interval> interval;
  std::size_t challenges = 0;            // with at least k attempts, which count
  std::size_t left_out = 0;              // attempted fewer than k times
  std::size_t solved = 0, attempts = 0;  // over the challenges that count
};

// The rate of one model; absent if no challenge was attempted k times. An attempt counts if it has
// a total; attempts at partial challenges count like others, because they solve what is asked
// there.
std::optional<PassRate> pass_rate(const Player&, const Goal&, std::size_t k);

// The number of challenges that an attempt solved, and of those attempted.
std::size_t solved_challenges(const Player&, const Goal&);
std::size_t attempted_challenges(const Player&);

}  // namespace assay::compare
