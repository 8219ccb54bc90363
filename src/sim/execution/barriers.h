// The barriers of a block: bar, barrier (PTX ISA, section 9.7.13).
//
// Threads arrive one by one. A barrier without a count completes when every thread of the block
// that has not exited has arrived (since compute capability 7.0, exited threads are not waited
// for). A barrier with a count completes when that many have arrived; a warp whose threads have all
// come counts as 32 even if it has fewer.
//
// The four warps of a warpgroup meet before they begin a common product and where they wait for it
// (wgmma.fence, wgmma.wait_group), because hardware begins one when all four have come.
#pragma once

#include <array>
#include <cstdint>

#include "sim/execution/program.h"

namespace assay::sim {

struct BlockRun;
struct WarpRun;
struct Fragment;

inline constexpr unsigned kBarriers = 16;
// Further ones in the same array: one that is not used (see cluster_run.h), then those of
// warpgroups.
inline constexpr unsigned kFirstWarpgroup = kBarriers + 1, kAllBarriers = kFirstWarpgroup + 8;

// Instr::imm of a Flow::barrier. Its slots: a is the barrier's number, then (b, c) the count, if
// any, and the predicate of .red; d is its result. The barriers of clusters and warpgroups have no
// slots.
struct BarrierOp {
  enum class Kind : std::uint8_t {
    sync,
    arrive,
    popc,
    all,  // .red.and
    any,
    cluster_arrive,  // this and the next: see cluster_run.h
    cluster_wait,
    warpgroup,  // wgmma.fence, wgmma.wait_group
  };
  Kind kind = Kind::sync;
  bool counted = false;       // b holds the number of threads
  bool aligned = false;       // all lanes of a warp must execute the same instruction
  std::uint32_t pending = 0;  // warpgroup: groups of products that are not waited for

  bool of_cluster() const { return kind == Kind::cluster_arrive || kind == Kind::cluster_wait; }
  std::uint64_t encode() const {
    return static_cast<std::uint64_t>(kind) | (counted ? 8u : 0u) | (aligned ? 16u : 0u) |
           std::uint64_t{pending} << 32;
  }
  static BarrierOp decode(std::uint64_t imm) {
    return {static_cast<Kind>(imm & 7), (imm & 8) != 0, (imm & 16) != 0,
            static_cast<std::uint32_t>(imm >> 32)};
  }
};

struct Barrier {
  std::uint32_t members = ~0u;              // warps that may take part
  std::array<std::uint32_t, 32> arrived{};  // lanes by warp, of incomplete warps
  std::uint32_t warps = 0;                  // that took part
  std::uint32_t complete = 0;               // warps all of whose lanes arrived
  std::uint32_t threads = 0;                // arrived, by the rule above; complete warps only
  std::uint32_t expected = 0;               // 0: all
  std::uint32_t true_threads = 0;           // for .red: those with a true predicate
  std::uint32_t false_threads = 0;
  bool aligned = false;
};

class Barriers {
 public:
  void reset() {
    if (in_use_ != 0) barriers_ = {};
    in_use_ = 0;
  }

  // The fragment has reached the barrier instruction `in`, at the end of block `f.block`, with
  // `lanes` of its lanes, which all name the same barrier. False: it has to wait.
  bool arrive(BlockRun&, WarpRun&, Fragment&, const Instr& in);
  // Likewise at a meeting of the warpgroup.
  bool arrive_in_warpgroup(BlockRun&, WarpRun&, Fragment&, std::uint32_t pending);
  // Lanes of the warp have exited: barriers may be complete without them now.
  void lanes_exited(BlockRun&);

  const Barrier& operator[](unsigned i) const { return barriers_[i]; }

 private:
  static void join(WarpRun&, std::uint32_t lanes, Barrier&);
  bool wait(BlockRun&, Fragment&, unsigned id);
  bool is_complete(const BlockRun&, const Barrier&) const;
  void complete(BlockRun&, unsigned id);

  std::array<Barrier, kAllBarriers> barriers_{};
  std::uint32_t in_use_ = 0;  // barriers at which someone has arrived
};

}  // namespace assay::sim
