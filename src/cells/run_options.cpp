#include "cells/run_options.h"

#include <algorithm>

#include "assay/parallel.h"

namespace assay::cells {

processes::WorkerSettings worker_settings(const cases::World& world, const RunOptions& options,
                                          const ChallengeSpec& spec,
                                          const std::filesystem::path& library) {
  processes::WorkerSettings settings;
  settings.tier = options.tier;
  settings.library = library;
  settings.challenge = world.challenge(spec.name).index;
  settings.spec = &spec;
  settings.threads = std::min(spec.limits.threads, available_cores());
  return settings;
}

processes::WorkerSettings simulator_settings(const cases::World& world, const RunOptions& options,
                                             const ChallengeSpec& spec,
                                             const std::filesystem::path& library) {
  processes::WorkerSettings settings = worker_settings(world, options, spec, library);
  settings.device.emplace();
  settings.device->threads = options.simulator_threads;
  return settings;
}

processes::WorkerSettings gpu_settings(const cases::World& world, const RunOptions& options,
                                       const ChallengeSpec& spec,
                                       const std::filesystem::path& library) {
  processes::WorkerSettings settings = simulator_settings(world, options, spec, library);
  settings.device->gpu = options.gpu;
  return settings;
}

// nvcc can take a minute for templates that it unrolls.
double build_limit(const ChallengeSpec& spec, Language language) {
  constexpr double kCudaBuildTime = 300;
  return language == Language::cuda ? std::max(kCudaBuildTime, spec.limits.build_time_s)
                                    : spec.limits.build_time_s;
}

}  // namespace assay::cells
