// Which instructions of a kernel the bank conflicts of a launch are due to.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace assay::sim {

// Thread-safe. Sums, so they do not depend on the order of add().
class ReplayTable {
 public:
  // Of a program with so many instructions.
  explicit ReplayTable(std::uint32_t instructions) : replays_(instructions) {}

  // REQUIRES: pc is that of one of them.
  void add(std::uint32_t pc, std::uint64_t replays) {
    replays_[pc].fetch_add(replays, std::memory_order_relaxed);
  }

  // Calls f(pc, replays) for each instruction that has any, in order.
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
