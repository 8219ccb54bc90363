// What a model's attempts took, beside what they solved.
#pragma once

#include <cstddef>
#include <optional>

#include "compare/field.h"
#include "compare/pass_at_k.h"

namespace assay::compare {

struct Effort {
  std::size_t attempts = 0, solved = 0;  // solved: challenges
  // Over all attempts that are not stale, those without an answer or a total included. Absent where
  // one does not know it: a sum of some would pass for all.
  std::optional<double> tokens, cost_usd, seconds;  // tokens: in and out

  // Absent where the sum is, or where nothing is solved.
  std::optional<double> per_solved(const std::optional<double>& sum) const;
};

Effort effort_of(const Player&, const Goal&);

}  // namespace assay::compare
