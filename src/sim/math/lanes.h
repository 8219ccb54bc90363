// The 32 lanes of a warp as arrays that compilers vectorise.
#pragma once

#include <cstdint>

namespace assay::sim {

struct alignas(64) Lanes32 {
  std::uint32_t v[32];
};

struct alignas(64) Lanes64 {
  std::uint64_t v[32];
};

}  // namespace assay::sim
