// Exclusive cases: they run with nothing beside them, because their result depends on the time they get.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "assay/results.h"
#include "run/bench.h"

namespace assay::run {

// The cases of the submission that the bench's settings name. Where cases have a pace, par is timed
// first, once for all that share it; its library is asked for only then. Throws Error when
// par fails. Nothing else may run meanwhile.
std::vector<CaseResult> run_exclusive(const Bench&, std::span<const CaseSpec* const> cases,
                                      const std::function<std::filesystem::path()>& par);

}  // namespace assay::run
