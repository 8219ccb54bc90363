// The instructions of a kernel that cause a launch's bank conflicts.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace assay::sim {

// Thread-safe. Holds sums, so the order of add() does not matter.
class ReplayTable {
 public:
  // For a program with this many instructions.
  explicit ReplayTable(std::uint32_t instructions) : replays_(instructions) {}

  // REQUIRES: pc is below that number.
  void add(std::uint32_t pc, std::uint64_t replays) {
    replays_[pc].fetch_add(replays, std::memory_order_relaxed);
  }

  // Calls f(pc, replays) for each instruction with replays, in order.
  template <class F>
  void each(const F& f) const {
    for (std::uint32_t pc = 0; pc < replays_.size(); ++pc) {
      const std::uint64_t replays = replays_[pc].load(std::memory_order_relaxed);
      if (replays != 0) f(pc, replays);
    }
  }

 private:
  std::vector<std::atomic<std::uint64_t>> replays_;
};

}  // namespace assay::sim
