// Times cases: submissions are measured against the challenge's naive and par implementations.
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

// Times one case for several submissions; results come in their order. In every repetition all run
// on the same fresh input in random order, with par right before or after each submission. Each
// runs in a worker of its own, with cold caches, and every output is checked. So one more
// submission costs little more than its own calls and checks. Unless the run is quick, repetitions
// beyond the spec's follow while a ratio to par is unsteady (repetitions.h). A wrong output ends
// the case for that submission with that verdict. The settings' library is not used. Throws Error
// if naive or par fails, which is a fault of the harness. Nothing else may run at the same time. If
// the settings name a real GPU, all are CUDA implementations and the GPU's work is timed; simulated
// ones cannot be timed.
std::vector<CaseResult> run_timed(const Bench&, const CaseSpec&, const BaselineLibraries&,
                                  std::span<const std::filesystem::path> submissions, bool quick);

// Measures the seconds par needs for a timed case, in a fresh worker. The settings name its
// library. Throws Error if it fails. Nothing else may run at the same time.
double time_par(const Bench&, const CaseSpec&);

}  // namespace assay::cases
