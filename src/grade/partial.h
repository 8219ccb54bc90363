// What of a challenge cannot be graded on a device, and whether that is too much for its score to
// stand beside others.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/device.h"

namespace assay {

struct DeviceGap {
  // Of the 100 points of the whole challenge, those that hang on what is not put to a submission
  // there. The tests of a submission's own do not count: not every challenge can try those in CUDA.
  double points = 0;
  std::vector<std::string> missing;  // "resources (37 points)", "core case train"
  // More than kPartialShare of correctness' weight is missing, or a core case: the score is of a
  // part of the challenge, and enters no average with whole ones.
  bool partial = false;
};

inline constexpr double kPartialShare = 1.0 / 3;

// Of the spec as it is today. On the CPU nothing is missing.
DeviceGap device_gap(const ChallengeSpec&, Device);

}  // namespace assay
