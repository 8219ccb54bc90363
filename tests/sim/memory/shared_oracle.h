// Races of shared memory by definition: every access is kept and compared with all earlier ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/memory/access.h"

namespace assay::sim {

class SharedOracle {
 public:
  explicit SharedOracle(std::uint32_t warps)
      : clocks_(warps * kLanes, std::vector<std::uint32_t>(warps * kLanes, 0)) {
    for (std::size_t t = 0; t < clocks_.size(); ++t) clocks_[t][t] = 1;
  }

  void barrier(std::uint32_t warps, std::uint32_t id) {
    std::vector<std::uint32_t> joined(clocks_.size());
    if (const auto it = arrived_.find(id); it != arrived_.end()) joined = it->second;
    arrived_.erase(id);
    meet(threads_of(warps), joined);
  }
  void arrive(std::uint32_t warp, std::uint32_t id) {
    auto& joined = arrived_.try_emplace(id, clocks_.size()).first->second;
    for (const std::uint32_t t : threads_of(1u << warp)) {
      join(joined, clocks_[t]);
      ++clocks_[t][t];
    }
  }
  void warp_sync(std::uint32_t warp, std::uint32_t lanes) {
    std::vector<std::uint32_t> threads;
    for (std::uint32_t l = 0; l < kLanes; ++l) {
      if (((lanes >> l) & 1u) != 0) threads.push_back(warp * kLanes + l);
    }
    meet(threads, std::vector<std::uint32_t>(clocks_.size()));
  }

  void mbarrier_arrive(std::uint32_t warp) { publish(warp, arrived_at_mbarrier_); }
  void mbarrier_complete() { complete_ = arrived_at_mbarrier_; }
  void mbarrier_wait(std::uint32_t warp) { learn(warp, complete_); }
  void fence(std::uint32_t warp) {
    auto& row = fences_[warp];
    row.clear();
    publish(warp, row);
  }

  // Whether the access races with any earlier one.
  bool access(const WarpAccess& a) {
    ++instruction_;
    if (is_atomic(a.kind)) flags(a);
    bool race = false;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (((a.mask >> lane) & 1u) == 0) continue;
      const std::uint32_t thread = a.warp * kLanes + lane;
      for (std::uint32_t b = 0; b < a.bytes; ++b) {
        const Event e{a.address[lane] + b, thread, clocks_[thread][thread], instruction_, a.kind};
        std::vector<Event>& history = history_[e.byte];
        for (const Event& x : history) race |= x.instruction != instruction_ && conflict(x, e);
        history.push_back(e);
      }
    }
    return race;
  }

 private:
  struct Event {
    std::uint64_t byte;
    std::uint32_t thread, clock, instruction;
    AccessKind kind;
  };

  bool conflict(const Event& x, const Event& y) const {
    if (x.thread == y.thread) return false;
    if (!writes(x.kind) && !writes(y.kind)) return false;
    if (is_atomic(x.kind) && is_atomic(y.kind)) return false;
    if (clocks_[y.thread][x.thread] >= x.clock) return false;
    // Excuse a lane that reads what it wrote together with others.
    return !(x.kind == AccessKind::store && !writes(y.kind) && wrote_together(x, y));
  }
  // Whether y's thread is one of those that wrote the byte in x's instruction.
  bool wrote_together(const Event& x, const Event& y) const {
    std::uint32_t first = ~0u, last = 0;
    for (const Event& e : history_.at(x.byte)) {
      if (e.instruction != x.instruction) continue;
      first = std::min(first, e.thread);
      last = std::max(last, e.thread);
    }
    // This must hold for all lanes that read in y's instruction, because the checker handles them
    // together.
    return first <= y.thread && y.thread <= last;
  }

  static void join(std::vector<std::uint32_t>& into, const std::vector<std::uint32_t>& other) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], other[i]);
  }
  static std::vector<std::uint32_t> threads_of(std::uint32_t warps) {
    std::vector<std::uint32_t> result;
    for (std::uint32_t w = 0; w < 32; ++w) {
      if (((warps >> w) & 1u) == 0) continue;
      for (std::uint32_t l = 0; l < kLanes; ++l) result.push_back(w * kLanes + l);
    }
    return result;
  }
  void publish(std::uint32_t warp, std::vector<std::uint32_t>& row) {
    row.resize(clocks_.size());
    for (const std::uint32_t t : threads_of(1u << warp)) {
      join(row, clocks_[t]);
      ++clocks_[t][t];
    }
  }
  void learn(std::uint32_t warp, const std::vector<std::uint32_t>& row) {
    if (row.empty()) return;
    for (const std::uint32_t t : threads_of(1u << warp)) join(clocks_[t], row);
  }
  // The warp's atomic writes release what precedes its fence, to atomic reads.
  void flags(const WarpAccess& a) {
    const auto each = [&](auto&& f) {
      for (std::uint32_t l = 0; l < kLanes; ++l) {
        if (((a.mask >> l) & 1u) != 0) f(flags_[a.address[l]]);
      }
    };
    if (reads(a.kind) && a.kind != AccessKind::reduction) {
      each([&](auto& row) { learn(a.warp, row); });
    }
    if (const auto fence = fences_.find(a.warp); writes(a.kind) && fence != fences_.end()) {
      each([&](auto& row) {
        row.resize(clocks_.size());
        join(row, fence->second);
      });
    }
  }
  void meet(const std::vector<std::uint32_t>& threads, std::vector<std::uint32_t> joined) {
    for (const std::uint32_t t : threads) join(joined, clocks_[t]);
    for (const std::uint32_t t : threads) {
      clocks_[t] = joined;
      ++clocks_[t][t];
    }
  }

  std::vector<std::vector<std::uint32_t>> clocks_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> arrived_;
  std::vector<std::uint32_t> arrived_at_mbarrier_, complete_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> fences_;  // by warp
  std::map<std::uint64_t, std::vector<std::uint32_t>> flags_;   // by address
  std::map<std::uint64_t, std::vector<Event>> history_;         // by byte
  std::uint32_t instruction_ = 0;
};

}  // namespace assay::sim
