// CUDA submissions on this machine's real GPU: which cases they run. A submission's host code stays
// in its sandbox; only the device process sees the driver.
#pragma once

#include <cstdint>

#include "assay/case.h"

namespace assay::cases {

enum class Sizes : std::uint8_t {
  full,       // as on the CPU: the GPU is busy for longer than a launch takes
  simulated,  // as on the simulator: measured times can be compared with the model's
};

// The challenge as run on a real GPU: spec_for(Device::cuda, ...), with the timed cases' parameters
// chosen by `sizes`.
ChallengeSpec spec_on_gpu(const ChallengeSpec& whole, Sizes sizes);

}  // namespace assay::cases
