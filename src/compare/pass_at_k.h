// How often a model solves a challenge, given so many attempts.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "compare/field.h"

namespace assay::compare {

// What counts as solved. A name, for the command line and for tables, and the test.
struct Goal {
  std::string name;
  std::function<bool(const BoardRow&)> reached;
};

// "correct" (verdict OK), "built" (it compiled and loaded), "core" (no core case failed), a
// verdict's code ("WA": which share ends so), or "score>=80". Throws Error that lists them.
Goal goal_from(const std::string& text);

// The unbiased estimate of the chance that one of k attempts at least succeeds, from n of which c
// did: 1 - C(n - c, k) / C(n, k) (Chen et al. 2021). REQUIRES 1 <= k <= n, c <= n; throws
// std::invalid_argument.
double pass_at_k(std::size_t n, std::size_t c, std::size_t k);

struct PassRate {
  double value = 0;  // mean over the challenges
  // 95 %. For k = 1 Wilson's, of all attempts together; else from a bootstrap over the attempts of
  // each challenge, and absent where no challenge has more than k of them: nothing to draw from.
  std::optional<Interval> interval;
  std::size_t challenges = 0;            // that have k attempts or more, and so count
  std::size_t left_out = 0;              // attempted less often than that
  std::size_t solved = 0, attempts = 0;  // over the challenges that count
};

// Of one model; absent where no challenge was attempted k times. An attempt counts when it has a
// total; those of partial challenges count as any other, for what is asked of them they solve.
std::optional<PassRate> pass_rate(const Player&, const Goal&, std::size_t k);

// Challenges that an attempt solved, and those that were attempted.
std::size_t solved_challenges(const Player&, const Goal&);
std::size_t attempted_challenges(const Player&);

}  // namespace assay::compare
