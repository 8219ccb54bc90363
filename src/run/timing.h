// Timed cases: the submission between the challenge's naive and par implementations.
#pragma once

#include <cstdint>
#include <filesystem>

#include "assay/results.h"
#include "run/correctness.h"
#include "run/worker_process.h"

namespace assay::run {

struct TimedLibraries {
  std::filesystem::path naive, par, submission;
};

// Times one case. In every repetition the three implementations run on the same fresh input, in
// random order, each in a worker of its own, with cold caches, and every output is checked. Unless
// the run is quick, repetitions beyond those of the spec follow while the ratio to par is unsteady. A wrong
// output of the submission ends the case with that verdict. Throws Error when naive or par fails:
// that is the harness's fault. Nothing else may run meanwhile.
CaseResult run_timed(const Challenge&, const CaseSpec&, const WorkerSettings&,
                     const TimedLibraries&, std::uint64_t run_seed, bool quick, TimeAccount&);

// The seconds that par needs for a timed case, now: the median of three runs on one input, each in a
// worker of its own. The settings name its library. Throws Error when it fails. Nothing else may
// run meanwhile.
double time_par(const Challenge&, const CaseSpec&, const WorkerSettings&, std::uint64_t run_seed,
                TimeAccount&);

}  // namespace assay::run
