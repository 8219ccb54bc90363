// One memory instruction of one warp, as the checks and counters see it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::sim {

inline constexpr unsigned kLanes = 32;

// Kinds from `atomic` on never race with one another. "Atomic" loads and stores are volatile, or
// .relaxed, .acquire or .release at gpu scope or wider (PTX ISA, "Memory Consistency Model": strong
// operations).
enum class AccessKind : std::uint8_t {
  load,
  store,
  atomic,     // atom: a read-modify-write whose result is used
  exchange,   // atom.exch: likewise, but the old value decides nothing
  reduction,  // red: has no result, so nothing is learned from it: it releases, never acquires
  atomic_load,
  atomic_store,
};

constexpr bool is_atomic(AccessKind kind) { return kind >= AccessKind::atomic; }
constexpr bool is_read_modify_write(AccessKind kind) {
  return kind >= AccessKind::atomic && kind <= AccessKind::reduction;
}
constexpr bool reads(AccessKind kind) {
  return kind != AccessKind::store && kind != AccessKind::atomic_store;
}
constexpr bool writes(AccessKind kind) {
  return kind != AccessKind::load && kind != AccessKind::atomic_load;
}

struct WarpAccess {
  AccessKind kind = AccessKind::load;
  std::uint32_t bytes = 4;  // per lane, all elements of a vector: 1, 2, 4, 8, 16, 32
  std::uint32_t mask = 0;   // participating lanes; never 0
  const std::uint64_t* address =
      nullptr;  // [kLanes]; of global: generic; of shared: offset in the window
  const void* value =
      nullptr;             // of stores: [kLanes] elements of `bytes`, lane-major; null: unknown
  std::uint32_t pc = 0;    // instruction index in the program, for findings
  std::uint32_t warp = 0;  // within the block
  // If below kLanes: the lane that does it all, for a copy. `value` is then of `mask` alone.
  std::uint32_t lane = kLanes;

  // The thread, within the block, that does a lane's part.
  std::uint32_t thread_of(std::uint32_t l) const {
    return warp * kLanes + (lane < kLanes ? lane : l);
  }
};

// A thread's access of a range of memory by hardware that copies: cp.async.bulk. Both numbers are
// multiples of kBulkPiece.
inline constexpr std::uint32_t kBulkPiece = 16;
struct RangeAccess {
  AccessKind kind = AccessKind::load;  // or store
  std::uint64_t address = 0;           // of shared: offset in the window
  std::uint64_t bytes = 0;
  const std::byte* value = nullptr;  // of stores
  std::uint32_t pc = 0, warp = 0, lane = 0;
};

}  // namespace assay::sim
