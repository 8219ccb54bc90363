// Options of one run, and the settings that follow from them for each cell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "assay/case.h"
#include "cases/correctness.h"
#include "cases/world.h"

namespace assay::cells {

struct RunOptions {
  sandbox::Tier tier = sandbox::Tier::none;
  std::uint64_t seed = 0;
  cases::CaseFilter filter;
  unsigned simulator_threads = 1;           // of each simulated device
  std::optional<processes::RealGpu> gpu{};  // where submissions on Device::cuda are measured
};

// Settings of a worker for a C++ library, and for a CUDA one on the simulated or the real GPU.
processes::WorkerSettings worker_settings(const cases::World&, const RunOptions&,
                                          const ChallengeSpec&,
                                          const std::filesystem::path& library);
processes::WorkerSettings simulator_settings(const cases::World&, const RunOptions&,
                                             const ChallengeSpec&,
                                             const std::filesystem::path& library);
processes::WorkerSettings gpu_settings(const cases::World&, const RunOptions&, const ChallengeSpec&,
                                       const std::filesystem::path& library);

// Compile time limit in seconds.
double build_limit(const ChallengeSpec&, Language);

}  // namespace assay::cells
