// Answers in CUDA on the real GPU of this machine: which cases they are put to. The host code of an
// answer stays in its sandbox; only the device process sees the driver.
#pragma once

#include <cstdint>

#include "assay/case.h"

namespace assay::cases {

enum class Sizes : std::uint8_t {
  full,       // as on the CPU: a GPU is busy for longer than a launch takes
  simulated,  // as on the simulator: what is measured can be compared with what is modelled
};

// The challenge as a real GPU is put to it: spec_for(Device::cuda, ...), timed cases with the
// parameters of `sizes`.
ChallengeSpec spec_on_gpu(const ChallengeSpec& whole, Sizes sizes);

}  // namespace assay::cases
