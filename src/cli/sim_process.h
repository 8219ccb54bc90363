// Runs a compiled CUDA program on the simulated device in a separate process.
//
// The child is a fork of assay; the program binds to assay's exported cuda* functions when it is
// loaded. It runs with the caller's rights, without isolation.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/nvcc.h"
#include "sim/device.h"
#include "sim/runtime/run_log.h"

namespace assay::cli {

struct SimulatedProgram {
  CudaLibraries libraries;             // with a main
  std::vector<std::string> arguments;  // argv, starting with the program's name
  sim::DeviceOptions device;
  bool stdout_to_stderr = false;  // because stdout is used for the report
};

struct SimulatedRun {
  int status = 0;           // from waitpid
  sim::RunSummary summary;  // complete up to the program's end, however it ended
};

SimulatedRun run_simulated(const SimulatedProgram&);

}  // namespace assay::cli
