// One answer on the public cases of its challenge: what a model or an agent may know at any time.
// Everything goes through the door of grading (build -> CellRunner), and nothing is kept but what
// was compiled.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assay/results.h"
#include "cells/cell.h"
#include "grade/gpu.h"
#include "submission/submission.h"

namespace assay::check {

struct PublicCheck {
  CellResult cell;  // of the public cases; without the timed one where `not_timed` says why
  // Indicative: of one small shape, from a few rounds; in CUDA modelled. Empty where it was not
  // timed.
  std::vector<ShapeSpeed> speeds;
  std::string modelled_on;  // the GPU; empty: measured
  std::string not_timed;
  double build_seconds = 0, case_seconds = 0, speed_seconds = 0;
};

// Builds, runs the cases and, where all that is required is right, times. `spec` is public_spec();
// the runner's seed is that of the public cases, its filter that of a quick run. Throws Error for a
// fault of the harness, and where there is no CUDA Toolkit for an answer in CUDA.
PublicCheck check_publicly(cells::CellRunner&, const ChallengeSpec& spec, const Submission&,
                           std::string_view gpu = kDefaultGpu);

// Whether a case shows something wrong: it failed, or something required is not supported or could
// not be run. What is optional may be left out.
bool is_wrong(const CaseResult&);

// Whether it compiles and no case is wrong.
bool passed(const PublicCheck&);

// The worst of it: of the build, else of the wrong cases.
Verdict worst(const PublicCheck&);

}  // namespace assay::check
