// Exclusive cases: they run with nothing beside them, because their result depends on the time they
// get.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "assay/results.h"
#include "cases/bench.h"

namespace assay::cases {

// The cases of the submission that the bench's settings name. Where cases have a pace, par is timed
// first, once for all that share it; its library is asked for only then. Throws Error when par
// fails. Nothing else may run at the same time.
//
// `timed` are the submission's results so far. Where it passed the case that sets a pace, beside
// par, its budget is no more than a quarter of what par's pace allows, at its own pace: an answer
// that wants more time than it needs must be slow where time counts.
std::vector<CaseResult> run_exclusive(const Bench&, std::span<const CaseSpec* const> cases,
                                      std::span<const CaseResult> timed,
                                      const std::function<std::filesystem::path()>& par);

}  // namespace assay::cases
