// How fast a real GPU is at its best, measured by its own events.
#pragma once

#include <cstdint>

#include "device/gpu.h"

namespace assay::device {

// Bytes that a copy of `bytes` within its memory reads and writes in a second. Needs twice as much
// memory. These throw std::runtime_error when the GPU gives up or tells no time.
double copy_bytes_per_s(Gpu&, std::uint64_t bytes);

// Operations that its matrix units do in a second on dense bf16 with sums in fp32, by mma.sync:
// what warps reach that work alone. wgmma, which takes a warpgroup and sm_90a, reaches more on an
// H100.
double bf16_flops_per_s(Gpu&, std::uint32_t multiprocessors);

}  // namespace assay::device
