// How many blocks of a kernel a multiprocessor of the simulated device holds at once, by the limits
// of compute capability 9.0 (NVIDIA, "CUDA C++ Programming Guide" 13.0, table of technical
// specifications).
#pragma once

#include <cstdint>

#include "sim/device.h"

namespace assay::sim {

inline constexpr std::uint32_t kMaxRegistersPerThread = 255, kSharedPerMultiprocessor = 228 << 10,
                               kReservedSharedPerBlock = 1 << 10;

// Registers per thread: KernelInfo's estimate, limited so that a block of max_threads can run.
std::uint32_t registers_per_thread(const KernelInfo&);

// As far as threads and shared memory decide. Registers are left out, because an estimate must not
// refuse a launch. 0: none fits.
std::uint32_t blocks_per_multiprocessor(const KernelInfo&, std::uint64_t threads,
                                        std::uint64_t dynamic_shared_bytes);

// As far as registers decide, with `registers` per thread. 0: a block of `threads` threads does not
// fit.
std::uint32_t blocks_by_registers(std::uint32_t registers, std::uint64_t threads);

// What limits how many warps a multiprocessor holds at once.
enum class ResidencyLimit : std::uint8_t { threads, blocks, shared_memory, registers };
const char* to_string(ResidencyLimit);  // "shared memory"

inline constexpr std::uint32_t kMaxResidentWarps = kMaxResidentThreads / kWarpSize;

struct Residency {
  std::uint32_t warps = 0;                         // 0: not even one block fits
  ResidencyLimit limit = ResidencyLimit::threads;  // the first of those that allow the fewest
};
// For blocks of `threads`. Other than above, registers count, by KernelInfo's estimate.
Residency residency_of(const KernelInfo&, std::uint32_t threads,
                       std::uint64_t dynamic_shared_bytes);

// How many clusters of `size` blocks run at once, if a multiprocessor holds `blocks`. A cluster lies
// within one of the GPU's groups of multiprocessors.
std::uint64_t resident_clusters(std::uint64_t blocks, std::uint64_t size);

// The most dynamic shared memory, in bytes, with which `blocks` of `threads` fit on a
// multiprocessor.
std::uint64_t dynamic_shared_for(const KernelInfo&, std::uint32_t blocks);

}  // namespace assay::sim
