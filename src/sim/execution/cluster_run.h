// The blocks of a cluster, which run together on one host thread: their barrier, and the shared
// memory that each can access of the others (PTX ISA: barrier.cluster, mapa, .shared::cluster).
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/address_map.h"
#include "sim/execution/block_run.h"
#include "sim/memory/cluster_races.h"
#include "sim/memory/lane_pattern.h"

namespace assay::sim {

class ClusterRun {
 public:
  // The fragments that wait for it have this as Fragment::barrier.
  static constexpr std::uint8_t kBarrier = kBarriers;

  explicit ClusterRun(const std::vector<std::unique_ptr<BlockRun>>&);  // by rank; they outlive it

  // The next cluster begins; its blocks have begun.
  void begin();
  std::uint32_t size() const { return static_cast<std::uint32_t>(blocks_.size()); }

  // Lanes of a fragment that stands at barrier.cluster.arrive or .wait. wait: false if it has to.
  void arrive(WarpRun&, std::uint32_t lanes);
  bool wait(WarpRun&, Fragment&);
  // Lanes of the block have exited.
  void lanes_exited(BlockRun&);

  // No thread of a block could go on in its turn. False: nor can any other of the cluster.
  bool others_may_go_on() { return ++idle_turns_ < running_; }
  void went_on() { idle_turns_ = 0; }

  // The block whose memory an offset in the shared window names; null if there is none. The offset
  // becomes one in that memory.
  BlockRun* owner(BlockRun& executing, std::uint64_t& offset) const {
    if (offset < kClusterStride) return &executing;
    const std::uint64_t rank = offset / kClusterStride - 1;
    offset %= kClusterStride;
    return rank < blocks_.size() ? blocks_[rank] : nullptr;
  }

 private:
  struct WarpState {
    std::uint32_t arrived = 0;   // lanes, for the barrier that is not complete
    std::uint32_t released = 0;  // lanes that need not wait for the last one
  };

  WarpState& state_of(const WarpRun& w) { return warps_[w.block->rank][w.index]; }
  bool is_complete() const;
  void complete();
  std::uint64_t number_of_barrier() const;

  std::vector<BlockRun*> blocks_;
  std::vector<std::vector<WarpState>> warps_;  // by rank
  std::optional<ClusterRaces> races_;
  std::uint64_t completed_ = 0;  // barriers
  std::uint32_t running_ = 0;    // blocks that have not ended
  std::uint32_t idle_turns_ = 0;
};

// Ends the launch: the cluster has no block of the rank in this offset of the shared window.
[[noreturn]] void no_such_block(WarpRun&, unsigned lane, std::uint64_t offset);

// Calls f(owner, addresses, mask) for the lanes of each block whose memory the offsets in the shared
// window name, with offsets in that memory.
template <class F>
void for_each_owner(WarpRun& w, const std::uint64_t* address, std::uint32_t mask, F&& f) {
  std::uint64_t offset[kLanes];
  for (std::uint32_t rest = mask; rest != 0;) {
    BlockRun* first = nullptr;
    std::uint32_t lanes = 0;
    for_lanes(rest, [&](std::uint32_t lane) {
      std::uint64_t at = address[lane];
      BlockRun* const owner = w.block->cluster->owner(*w.block, at);
      if (owner == nullptr) no_such_block(w, lane, address[lane]);
      if (first == nullptr) first = owner;
      if (owner != first) return;
      offset[lane] = at;
      lanes |= 1u << lane;
    });
    f(*first, static_cast<const std::uint64_t*>(offset), lanes);
    rest &= ~lanes;
  }
}

// Whether some lane names the memory of a block by its rank, which may be the executing block.
inline bool names_cluster(const WarpRun& w, const std::uint64_t* address, std::uint32_t mask) {
  if (w.block->cluster == nullptr) return false;
  for (; mask != 0; mask &= mask - 1) {
    if (address[std::countr_zero(mask)] >= kClusterStride) return true;
  }
  return false;
}

}  // namespace assay::sim
