// Where cases meet the world: the compiler, worker processes, the clock, the caches. Tests bring a
// world of their own.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "assay/gpu_state.h"
#include "build/builder.h"
#include "measure/machine.h"
#include "processes/worker.h"

namespace assay::cases {

// A challenge that is compiled in.
struct KnownChallenge {
  std::uint32_t index = 0;  // by which workers know it
  const Challenge* challenge = nullptr;
};

using Compile = std::function<BuildResult(const BuildRequest&)>;

struct World {
  Compile compile;                                              // may be called by several threads
  processes::WorkerFactory make_worker;                         // likewise
  std::function<KnownChallenge(const std::string&)> challenge;  // throws Error for an unknown one
  std::function<double()> now;                                  // seconds since some moment
  std::string target = kNativeTarget;                           // that C++ is compiled for
  std::filesystem::path kept;          // folder of what is found out once for all runs
  std::function<void()> flush_caches;  // of every core
  std::function<Roofline()> roofline;  // of the machine, now
  // Of the real GPU, now; empty where nobody tells.
  std::function<GpuState()> gpu_state;
};

// Writes and reads a buffer larger than the last-level cache on every core: the real flush_caches.
void flush_caches();

// The builder must outlive it.
World real_world(Builder&);

}  // namespace assay::cases
