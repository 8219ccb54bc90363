// The barriers of a block: bar, barrier (PTX ISA, section 9.7.13).
//
// Threads arrive one by one. A barrier without a count completes when every thread of the block
// that has not exited has arrived (since compute capability 7.0, exited threads are not waited
// for). A barrier with a count completes when that many have arrived; a warp whose threads have all
// come counts as 32 even if it has fewer.
#pragma once

#include <array>
#include <cstdint>

#include "sim/execution/program.h"

namespace assay::sim {

struct BlockRun;
struct WarpRun;
struct Fragment;

inline constexpr unsigned kBarriers = 16;

// Instr::imm of a Flow::barrier. Its slots: a is the barrier's number, then (b, c) the count, if
// any, and the predicate of .red; d is its result. The barrier of a cluster has no slots.
struct BarrierOp {
  enum class Kind : std::uint8_t {
    sync,
    arrive,
    popc,
    all,  // .red.and
    any,
    cluster_arrive,  // this and what follows: see cluster_run.h
    cluster_wait,
  };
  Kind kind = Kind::sync;
  bool counted = false;  // b holds the number of threads
  bool aligned = false;  // all lanes of a warp must execute the same instruction

  bool of_cluster() const { return kind >= Kind::cluster_arrive; }
  std::uint64_t encode() const {
    return static_cast<std::uint64_t>(kind) | (counted ? 8u : 0u) | (aligned ? 16u : 0u);
  }
  static BarrierOp decode(std::uint64_t imm) {
    return {static_cast<Kind>(imm & 7), (imm & 8) != 0, (imm & 16) != 0};
  }
};

struct Barrier {
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
  // Lanes of the warp have exited: barriers may be complete without them now.
  void lanes_exited(BlockRun&);

  const Barrier& operator[](unsigned i) const { return barriers_[i]; }

 private:
  bool is_complete(const BlockRun&, const Barrier&) const;
  void complete(BlockRun&, unsigned id);

  std::array<Barrier, kBarriers> barriers_{};
  std::uint32_t in_use_ = 0;  // barriers at which someone has arrived
};

}  // namespace assay::sim
