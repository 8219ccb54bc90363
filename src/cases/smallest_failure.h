// Drawn cases that failed, told by the simplest draw that fails in the same way.
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

// Whether a verdict is worth to be shrunk: what a case of its own can show, in little time.
bool can_shrink(Verdict);

// The simplest draw found with the verdict of `failure`, on inputs of the same seed. Bounded in
// runs and in time.
Failure smallest_failure(CaseRunner&, const Bench&, const CaseSpec& placeholder, Failure);

// Adds to the details of those results that belong to draws and failed, some at most.
void shrink_failures(const Bench&, const std::deque<draw::Drawn>&, std::vector<CaseResult>&);

}  // namespace assay::cases
