// What commands need that measure on the machine's real GPU.
#pragma once

#include <string>

#include "cli/harness.h"
#include "run/world.h"

namespace assay::cli {

// The world of Device::cuda: its roofline is that of the GPU behind `driver`, copies as measured
// now and arithmetic by the data sheet `sheet`; "" is that of the GPU's name. Notes the GPU in the
// harness's machine. Throws Error when there is no GPU, data sheet or compiler.
run::World world_of_gpu(Harness&, const std::string& driver, const std::string& sheet);

}  // namespace assay::cli
