// Setup for commands that measure on the machine's real GPU.
#pragma once

#include <string>

#include "cases/world.h"
#include "cli/harness.h"
#include "processes/gpu_machine.h"

namespace assay::cli {

// Paths or names.
struct GpuLibraries {
  std::string driver = processes::kCudaDriver, management = processes::kManagement;
};

// Declares --driver and --management.
void add_gpu_libraries(CLI::App&, GpuLibraries&);

// The world for measurements on the device: the real one, or world_of_gpu().
cases::World world_on(Device, Harness&, const GpuLibraries&, const std::string& sheet);

// The world of Device::cuda: its roofline is the GPU's, with copies as measured now and arithmetic
// from the data sheet `sheet`; "" selects the sheet by the GPU's name. Records the GPU in the
// harness's machine. Throws Error if there is no GPU, data sheet or compiler.
cases::World world_of_gpu(Harness&, const GpuLibraries&, const std::string& sheet);

}  // namespace assay::cli
