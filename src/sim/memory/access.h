// One memory instruction of one warp, as the checks and counters see it.
#pragma once

#include <cstdint>

namespace assay::sim {

inline constexpr unsigned kLanes = 32;

enum class AccessKind : std::uint8_t {
  load,
  store,
  atomic,     // read-modify-write, or a load or store that is .relaxed, .acquire, .release at gpu scope
};

struct WarpAccess {
  AccessKind kind = AccessKind::load;
  std::uint32_t bytes = 4;                 // a lane, all elements of a vector: 1, 2, 4, 8, 16 (32)
  std::uint32_t mask = 0;                  // lanes that take part; never 0
  const std::uint64_t* address = nullptr;  // [kLanes]; of global: generic; of shared: offset in the window
  const void* value = nullptr;             // of stores: [kLanes] elements of `bytes`, lane-major; null: unknown
  std::uint32_t pc = 0;                    // instruction index in the program, for findings
  std::uint32_t warp = 0;                  // within the block
};

}  // namespace assay::sim
