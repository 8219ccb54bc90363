// Answers in CUDA on the real GPU of this machine: their cases checked, and timed against naive and
// par. The host code of an answer stays in its sandbox; only the device process sees the driver.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/baselines.h"
#include "run/world.h"

namespace assay::run {

enum class Sizes : std::uint8_t {
  full,       // as on the CPU: a GPU is busy for longer than a launch takes
  simulated,  // as on the simulator: what is measured can be compared with what is modelled
};

// The challenge as a real GPU is put to it: the cases that the simulator gets, timed ones with the
// parameters of `sizes`.
ChallengeSpec spec_on_gpu(const ChallengeSpec& whole, Sizes sizes);

// Machine code is made too of whatever is built in CUDA.
World world_on_gpu(Builder&);

// Of a worker whose device is the GPU behind `driver`, the path or name of CUDA's driver library.
WorkerSettings gpu_settings(const World&, const RunOptions&, const ChallengeSpec&,
                            const std::filesystem::path& library, const std::string& driver);

}  // namespace assay::run
