// The score of a cell. Pure: the same measurements give the same score, whether fresh or read from
// a file.
#pragma once

#include <string>
#include <string_view>

#include "assay/case.h"
#include "assay/results.h"
#include "grade/gpu.h"

namespace assay {

inline constexpr double kFailedCoreCap = 59;
inline constexpr int kFewRepetitions = 3;

// Points come only from what was run:
//  - A case that the harness did not run (absent, skipped, or its own error) leaves its dimension
//    without points, and the score without a total. Dimension::why says what is missing.
//  - A quick run, in which every case marked quick was run, is an exception: each dimension is
//    graded over the cases that ran, dimensions without any are left out, the total is scaled to
//    100, and the score carries a note of the kind quick.
//  - A submission that did not build or load has a total of 0. A failed core case caps the total
//    at kFailedCoreCap.
// Dimensions of weight 0 are left out. Cases unknown to the spec are ignored.
//
// The speed of a simulated cell (Device::sim) comes from the model of `gpu`, see grade/gpu.h; its
// spec is spec_for(Device::sim, ...). The score names the GPU.
Score grade(const ChallengeSpec&, const CellResult&, std::string_view gpu = kDefaultGpu);

// Whether nothing of the submission could be run: there was no answer, or it does not build or
// load. Such a score is the same in quick and full runs.
bool never_ran(const Score&);

// "A" .. "F", based on the total as displayed, rounded to a tenth of a point.
std::string letter(double total);

// Points as displayed: one decimal.
double shown(double points);

}  // namespace assay
