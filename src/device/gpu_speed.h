// Measures a real GPU's peak speed, with its own events.
#pragma once

#include <cstdint>

#include "device/gpu.h"

namespace assay::device {

// Bytes read and written per second by a copy of `bytes` within GPU memory. Needs 2 * `bytes` of
// memory. Both functions throw std::runtime_error if the GPU fails or reports no time.
double copy_bytes_per_s(Gpu&, std::uint64_t bytes);

// Operations per second of the matrix units on dense bf16 with fp32 sums through mma.sync, the most
// that independent warps can reach. wgmma, which needs a warpgroup and sm_90a, reaches more on an
// H100.
double bf16_flops_per_s(Gpu&, std::uint32_t multiprocessors);

}  // namespace assay::device
