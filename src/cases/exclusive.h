// Exclusive cases: they run with nothing else running, because their result depends on the CPU time
// they get.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "assay/results.h"
#include "cases/bench.h"

namespace assay::cases {

// Runs the cases against the submission that the bench's settings name. If cases have a pace, par
// is timed first, once per pace case; its library is asked for only then. Throws Error if par
// fails. Nothing else may run at the same time.
//
// `timed` holds the submission's results so far. If it passed the case that sets a pace, timed
// beside par, its budget is at most a quarter of what its own pace would give, and never more than
// par's: a submission that wants more time than it needs must be slow where speed counts.
std::vector<CaseResult> run_exclusive(const Bench&, std::span<const CaseSpec* const> cases,
                                      std::span<const CaseResult> timed,
                                      const std::function<std::filesystem::path()>& par);

}  // namespace assay::cases
