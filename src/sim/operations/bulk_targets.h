// Where bulk copies to shared memory go: the blocks of a cluster, and the mbarriers that count
// them.
#pragma once

#include <cstdint>

#include "sim/execution/block_run.h"
#include "sim/execution/bulk_copies.h"
#include "sim/execution/warp.h"

namespace assay::sim {

// The block whose shared memory an offset in the window names. The offset becomes one in it.
BlockRun& owner_of(WarpRun&, std::uint32_t lane, std::uint64_t& offset);

// The block whose memory holds both the destination and the mbarrier, which become offsets in it.
BlockRun& target_of(WarpRun&, std::uint32_t lane, std::uint64_t& to, std::uint64_t& object);

// Starts a copy that has read its source.
void issue(BlockRun& by, BlockRun& to, const BulkCopy&, std::uint64_t object, BulkCopies::Contents);

// Reads and starts a copy: to the block, from global memory or shared memory of the executing one;
void send(WarpRun&, BlockRun& to, const BulkCopy&, std::uint64_t object, bool from_shared);
// from global memory to the same place in each block, by rank, that the mask names.
void multicast(WarpRun&, const BulkCopy&, std::uint64_t object, std::uint32_t blocks);

}  // namespace assay::sim
