// What a model's attempts cost, and what they solved.
#pragma once

#include <cstddef>
#include <optional>

#include "compare/field.h"
#include "compare/pass_at_k.h"

namespace assay::compare {

struct Effort {
  std::size_t attempts = 0, solved = 0;  // solved: challenges
  // Sums over all attempts that are not stale, including those without an answer or a total. Absent
  // if any attempt lacks the value: a partial sum would pass for a full one.
  std::optional<double> tokens, cost_usd, seconds;  // tokens: in and out

  // Absent if the sum is, or if nothing was solved.
  std::optional<double> per_solved(const std::optional<double>& sum) const;
};

Effort effort_of(const Player&, const Goal&);

}  // namespace assay::compare
