// The order in which the blocks of a launch begin: clusters in an order that follows from the seed,
// the blocks of each by rank.
#pragma once

#include <cstdint>

#include "sim/device.h"
#include "sim/execution/permutation.h"

namespace assay::sim {

class LaunchOrder {
 public:
  // Seed 0: ascending.
  LaunchOrder(const LaunchConfig& config, std::uint64_t seed)
      : grid_(config.grid),
        cluster_(config.cluster),
        clusters_(config.grid.count() / config.cluster.count(), seed) {}

  // The linear index of the block that is the n-th to begin.
  std::uint64_t operator()(std::uint64_t n) const {
    const std::uint64_t size = cluster_.count(), rank = n % size, cluster = clusters_(n / size);
    const std::uint64_t across = grid_.x / cluster_.x, down = grid_.y / cluster_.y;
    const std::uint64_t x = cluster % across * cluster_.x + rank % cluster_.x;
    const std::uint64_t y = cluster / across % down * cluster_.y + rank / cluster_.x % cluster_.y;
    const std::uint64_t z = cluster / across / down * cluster_.z + rank / cluster_.x / cluster_.y;
    return (z * grid_.y + y) * grid_.x + x;
  }

 private:
  Dim3 grid_, cluster_;
  Permutation clusters_;
};

}  // namespace assay::sim
