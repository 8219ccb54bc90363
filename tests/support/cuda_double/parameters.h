// The parameter block of a launch, from what cuLaunchKernel is given.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/device.h"

namespace assay::gpu {

// Either `params`, a pointer to each parameter's value, or `extra`, a list that names a buffer with
// all of them. nullopt when neither or both are given and the kernel has parameters, and when the
// list is none or the buffer is too short.
std::optional<std::vector<std::byte>> parameter_block(const sim::KernelInfo&, void** params,
                                                      void** extra);

}  // namespace assay::gpu
