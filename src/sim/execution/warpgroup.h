// What a warp's products of matrices (wgmma) read of shared memory until the warp has waited for
// them (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
//
// Hardware may read at any time from the instruction to the wait. The simulator reads when the
// instruction is executed, and the race check sees a second read when the wait begins. So what the
// program overwrites in between is found as a race.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/memory/access.h"

namespace assay::sim {

inline constexpr std::uint32_t kWarpgroup = 4;  // warps; the first one's index is a multiple of it

// Up to 32 pieces of kBulkPiece bytes.
struct SharedRead {
  std::uint32_t pc = 0, mask = 0;
  std::array<std::uint32_t, kLanes> offset{};
};

class PendingReads {
 public:
  void reset() {
    reads_.clear();
    group_ = 0;
  }
  void add(const SharedRead& r) { reads_.push_back({r, group_}); }
  // Closes the current group.
  void commit() { ++group_; }
  // Calls f(read) for each of all closed groups but the latest `pending`, and forgets it.
  template <class F>
  void wait(std::uint32_t pending, F&& f) {
    std::erase_if(reads_, [&](const Read& r) {
      if (r.group + std::uint64_t{pending} >= group_) return false;
      f(r.read);
      return true;
    });
  }

 private:
  struct Read {
    SharedRead read;
    std::uint32_t group = 0;
  };
  std::vector<Read> reads_;  // in order
  std::uint32_t group_ = 0;  // how many are closed
};

}  // namespace assay::sim
