// The outside world as cases see it: the compiler, worker processes, the clock, the caches. Tests
// substitute their own.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "assay/gpu_state.h"
#include "build/builder.h"
#include "measure/machine.h"
#include "processes/worker.h"

namespace assay::cases {

// A challenge compiled into the program.
struct KnownChallenge {
  std::uint32_t index = 0;  // identifies it to workers
  const Challenge* challenge = nullptr;
};

using Compile = std::function<BuildResult(const BuildRequest&)>;

struct World {
  Compile compile;                                              // may be called by several threads
  processes::WorkerFactory make_worker;                         // likewise
  std::function<KnownChallenge(const std::string&)> challenge;  // throws Error for an unknown one
  std::function<double()> now;                                  // seconds since an arbitrary point
  std::string target = kNativeTarget;                           // the target C++ is compiled for
  std::filesystem::path kept;          // folder of results kept across runs
  std::function<void()> flush_caches;  // of every core
  std::function<Roofline()> roofline;  // of the machine, now
  // State of the real GPU, now; empty if there is no source for it.
  std::function<GpuState()> gpu_state;
};

// The builder must outlive it.
World real_world(Builder&);

}  // namespace assay::cases
