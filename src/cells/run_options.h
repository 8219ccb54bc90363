// How the cells of one run are run, and what follows from it for each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "assay/case.h"
#include "cases/correctness.h"
#include "cases/world.h"

namespace assay::cells {

struct RunOptions {
  sandbox::Tier tier = sandbox::Tier::none;
  std::uint64_t seed = 0;
  cases::CaseFilter filter;
  unsigned simulator_threads = 1;  // of each simulated device
  // Path or name of CUDA's driver library, where answers on Device::cuda are measured.
  std::string driver{};
};

// Of a worker for a library in C++, and of one in CUDA on the simulated GPU or on the real one.
processes::WorkerSettings worker_settings(const cases::World&, const RunOptions&,
                                          const ChallengeSpec&,
                                          const std::filesystem::path& library);
processes::WorkerSettings simulator_settings(const cases::World&, const RunOptions&,
                                             const ChallengeSpec&,
                                             const std::filesystem::path& library);
processes::WorkerSettings gpu_settings(const cases::World&, const RunOptions&, const ChallengeSpec&,
                                       const std::filesystem::path& library);

// Seconds that the compiler may take.
double build_limit(const ChallengeSpec&, Language);

}  // namespace assay::cells
