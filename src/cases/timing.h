// Timed cases: submissions between the challenge's naive and par implementations.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "assay/results.h"
#include "cases/bench.h"

namespace assay::cases {

struct BaselineLibraries {
  std::filesystem::path naive, par;
};

// Times one case of several submissions, whose results come in their order. In every repetition all
// run on the same fresh input, in random order, par right before or after each submission; each in
// a worker of its own, with cold caches, and every output is checked. So a further submission costs
// little more than its own calls and checks. Unless the run is quick, repetitions beyond those of
// the spec follow while a ratio to par is unsteady (repetitions.h). A wrong output ends the case
// for that submission with that verdict. The settings' library is not used. Throws Error when naive
// or par fails: that is the harness's fault. Nothing else may run at the same time. Where the
// settings name a real GPU, all are answers in CUDA, and what is timed is the GPU's work; simulated
// ones cannot be timed.
std::vector<CaseResult> run_timed(const Bench&, const CaseSpec&, const BaselineLibraries&,
                                  std::span<const std::filesystem::path> submissions, bool quick);

// The seconds that par needs for a timed case, now, in a fresh worker. The settings name its
// library. Throws Error when it fails. Nothing else may run at the same time.
double time_par(const Bench&, const CaseSpec&);

}  // namespace assay::cases
