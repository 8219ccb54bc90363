// A compiled CUDA program, run on the simulated device in a process of its own.
//
// The child is a fork of assay, whose exported cuda* functions the program binds to when it is
// loaded. It runs with the caller's rights: nothing isolates it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/device.h"
#include "sim/runtime/run_log.h"

namespace assay::cli {

struct SimulatedProgram {
  std::filesystem::path library;       // with a main
  std::vector<std::string> arguments;  // argv, the program's name first
  sim::DeviceOptions device;
  bool stdout_to_stderr = false;  // stdout belongs to the report
};

struct SimulatedRun {
  int status = 0;           // of waitpid
  sim::RunSummary summary;  // complete up to the program's end, however it ended
};

SimulatedRun run_simulated(const SimulatedProgram&);

}  // namespace assay::cli
