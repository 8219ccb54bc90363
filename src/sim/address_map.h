// Where the simulated GPU's memories lie in its generic 64-bit address space. Every process that
// holds device pointers reserves these ranges without access rights, so that dereferencing one on
// the host faults as on hardware. The bytes are stored elsewhere.
#pragma once

#include <cstdint>

namespace assay::sim {

struct AddressRange {
  std::uint64_t begin = 0, bytes = 0;
  constexpr bool contains(std::uint64_t a) const { return a - begin < bytes; }
};

// Global memory, device globals and constants.
inline constexpr AddressRange kGlobalRange{0x2000'0000'0000, std::uint64_t{1} << 37};
// Shared memory of the executing block; offset 0 of the window is offset 0 of .shared.
inline constexpr AddressRange kSharedRange{0x1000'0000'0000, std::uint64_t{1} << 24};
// Further on in the same window, the shared memories of the cluster's blocks, the executing one
// included: that of the block of rank r begins at offset (r + 1) * kClusterStride.
inline constexpr std::uint64_t kClusterStride = std::uint64_t{1} << 18;
// Local memory of the executing thread, likewise.
inline constexpr AddressRange kLocalRange{0x1100'0000'0000, std::uint64_t{1} << 24};
// Kernel parameters, likewise (cvta.param).
inline constexpr AddressRange kParamRange{0x1200'0000'0000, std::uint64_t{1} << 16};

}  // namespace assay::sim
