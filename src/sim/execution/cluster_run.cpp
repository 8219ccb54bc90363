#include "sim/execution/cluster_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::sim {

ClusterRun::ClusterRun(const std::vector<std::unique_ptr<BlockRun>>& blocks) {
  for (const auto& block : blocks) blocks_.push_back(block.get());
  const BlockRun& first = *blocks_.front();
  const std::size_t warps = first.warps.size();
  warps_.resize(blocks_.size(), std::vector<WarpState>(warps));
  if (first.checker.checks_races()) {
    races_.emplace(size(), static_cast<std::uint32_t>(warps), first.checker.shared_bytes());
  }
}

void ClusterRun::begin() {
  std::vector<std::uint64_t> indices;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    BlockRun& block = *blocks_[rank];
    block.cluster = this;
    block.checker.join_cluster(rank, races_ ? &*races_ : nullptr);
    std::ranges::fill(warps_[rank], WarpState{});
    indices.push_back(block.index);
  }
  if (races_) races_->begin(indices);
  completed_ = 0;
  running_ = size();
  idle_turns_ = 0;
}

void ClusterRun::arrive(WarpRun& w, std::uint32_t lanes) {
  WarpState& state = state_of(w);
  if ((lanes & (state.arrived | state.released)) != 0) {
    fail(w, FindingKind::trap, static_cast<std::uint32_t>(std::countr_zero(lanes)),
         "arrives at the cluster's barrier again before it has waited for it");
  }
  state.arrived |= lanes;
  w.block->checker.cluster_arrive(w.index, (w.live & ~state.arrived) == 0);
  if (is_complete()) complete();
}

bool ClusterRun::wait(WarpRun& w, Fragment& f) {
  WarpState& state = state_of(w);
  if ((f.mask & ~(state.arrived | state.released)) != 0) {
    fail(w, FindingKind::trap, static_cast<std::uint32_t>(std::countr_zero(f.mask)),
         "waits for the cluster's barrier, at which it has not arrived");
  }
  if ((f.mask & ~state.released) != 0) {
    f.state = Fragment::State::at_barrier;
    f.barrier = kBarrier;
    return false;
  }
  state.released &= ~f.mask;
  w.block->checker.cluster_wait(w.index);
  return true;
}

void ClusterRun::lanes_exited(BlockRun& block) {
  if (std::ranges::none_of(block.warps, [](const WarpRun& w) { return w.live != 0; })) {
    --running_;
    block.checker.cluster_end();
  }
  if (is_complete()) complete();
}

bool ClusterRun::is_complete() const {
  bool some = false;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    for (const WarpRun& w : blocks_[rank]->warps) {
      const std::uint32_t arrived = warps_[rank][w.index].arrived;
      if ((w.live & ~arrived) != 0) return false;
      some |= arrived != 0;
    }
  }
  return some;
}

// Of two barriers of a cluster in turn, and of those of different clusters.
std::uint64_t ClusterRun::number_of_barrier() const {
  return blocks_.front()->index * 8 + completed_ % 2 * 4;
}

void ClusterRun::complete() {
  const std::uint64_t number = number_of_barrier();
  ++completed_;
  went_on();
  if (races_) races_->complete();
  for (BlockRun* block : blocks_) block->checker.cluster_release(number);
  for (BlockRun* block : blocks_) {
    std::uint32_t waited = 0, live = 0;
    for (WarpRun& w : block->warps) {
      WarpState& state = state_of(w);
      state.released = std::exchange(state.arrived, 0);
      live |= w.live != 0 ? 1u << w.index : 0u;
      for (std::uint32_t i = 0; i < w.fragment_count; ++i) {
        Fragment& f = w.fragments[i];
        if (f.state != Fragment::State::at_barrier || f.barrier != kBarrier) continue;
        f.state = Fragment::State::ready;
        ++f.block;
        state.released &= ~f.mask;
        waited |= 1u << w.index;
      }
      w.limit = 0;  // makes the executing fragment look up: others may be ready now
    }
    block->checker.cluster_complete(number, waited, waited == live);
    ++block->counters->barriers;
  }
}

void no_such_block(WarpRun& w, unsigned lane, std::uint64_t offset) {
  fail(w, FindingKind::out_of_bounds, lane,
       fmt::format("names the block of rank {} in a cluster of {}", offset / kClusterStride - 1,
                   w.block->cluster->size()));
}

}  // namespace assay::sim
