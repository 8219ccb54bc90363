// What cudaGetDeviceProperties and cudaDeviceGetAttribute say of the simulated device.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/runtime/abi.h"

namespace assay::sim::cuda {

// An H100-class GPU (compute capability 9.0) with `memory_bytes`; 0 for what the simulator lacks,
// such as textures, mapped memory, and clusters.
cudaDeviceProp device_properties(std::uint64_t memory_bytes);

// The value of a cudaDeviceAttr by its number; nullopt: there is no such attribute.
std::optional<int> device_attribute(const cudaDeviceProp&, std::uint32_t attribute);

}  // namespace assay::sim::cuda
