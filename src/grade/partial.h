// Which parts of a challenge cannot be graded on a device, and whether too much is missing for the
// score to be compared with others.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/device.h"

namespace assay {

struct DeviceGap {
  // The points, out of 100 for the whole challenge, that depend on parts not run on the device. The
  // dimension tests does not count, because not every challenge can run own tests in CUDA.
  double points = 0;
  std::vector<std::string> missing;  // "resources (37 points)", "core case train"
  // True if more points than kPartialShare of the weight of correctness are missing, or a core
  // case: the score then covers only part of the challenge, and is not averaged with whole ones.
  bool partial = false;
};

inline constexpr double kPartialShare = 1.0 / 3;

// Based on the current spec. On the CPU nothing is missing.
DeviceGap device_gap(const ChallengeSpec&, Device);

}  // namespace assay
