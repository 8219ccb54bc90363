// The simulated device's answers to cudaGetDeviceProperties and cudaDeviceGetAttribute.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/runtime/abi.h"

namespace assay::sim::cuda {

// A GPU of the class of H100 (compute capability 9.0); 0 for what the simulator lacks,
// such as surfaces, and for textures and mapped memory, which answers do not have.
cudaDeviceProp device_properties(std::uint64_t memory_bytes, std::uint32_t multiprocessors);

// The value of a cudaDeviceAttr by its number; absent if there is no such attribute.
std::optional<int> device_attribute(const cudaDeviceProp&, std::uint32_t attribute);

}  // namespace assay::sim::cuda
