// The parameter block of a launch, built from cuLaunchKernel's arguments.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/device.h"

namespace assay::gpu {

// Either `params`, a pointer to each parameter's value, or `extra`, a list that names a buffer with
// all of them. nullopt if neither or both are given and the kernel has parameters, if the list is
// malformed, or if the buffer is too short.
std::optional<std::vector<std::byte>> parameter_block(const sim::KernelInfo&, void** params,
                                                      void** extra);

}  // namespace assay::gpu
