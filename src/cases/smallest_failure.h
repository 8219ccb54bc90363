// Shrinks failed drawn cases to the simplest draw that fails in the same way.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assay/results.h"
#include "cases/bench.h"
#include "cases/case_runner.h"
#include "draw/space.h"

namespace assay::cases {

// A draw that failed, and how.
struct Failure {
  nlohmann::json draw;
  CaseResult result;
};

// Whether a verdict is worth shrinking: one that a single case can reproduce quickly.
bool can_shrink(Verdict);

// The simplest draw found with the verdict of `failure`, on inputs of the same seed. Bounded in
// runs and time.
Failure smallest_failure(CaseRunner&, const Bench&, const CaseSpec& placeholder, Failure);

// Adds the draw to the details of failed results of drawn cases. Shrinks only the first few.
void shrink_failures(const Bench&, const std::deque<draw::Drawn>&, std::vector<CaseResult>&);

}  // namespace assay::cases
