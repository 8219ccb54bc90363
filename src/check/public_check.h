// Runs one submission on the public cases of its challenge, whose results a model or an agent may
// see at any time. Everything takes the same path as grading (build -> CellRunner), and nothing is
// kept except the compiled code.
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
  CellResult cell;  // of the public cases; if `not_timed` is set, without the timed one
  // Indicative only: one small shape, a few rounds; modelled in CUDA. Empty if not timed.
  std::vector<ShapeSpeed> speeds;
  std::string modelled_on;  // the GPU; empty if measured
  std::string not_timed;
  double build_seconds = 0, case_seconds = 0, speed_seconds = 0;
};

// Builds, runs the cases and, if everything required is right, times. `spec` is public_spec(); the
// runner has the seed of the public cases and the filter of a quick run. Throws Error for a fault
// of the harness, or if a CUDA submission lacks a CUDA Toolkit.
PublicCheck check_publicly(cells::CellRunner&, const ChallengeSpec& spec, const Submission&,
                           std::string_view gpu = kDefaultGpu);

// Whether a case shows something wrong: it failed, or something required is not supported or could
// not be run. Optional features may be left out.
bool is_wrong(const CaseResult&);

// Whether it compiles and no case is wrong.
bool passed(const PublicCheck&);

// The worst verdict of the build and the wrong cases.
Verdict worst(const PublicCheck&);

}  // namespace assay::check
