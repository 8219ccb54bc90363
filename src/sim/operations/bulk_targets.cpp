#include "sim/operations/bulk_targets.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "sim/address_map.h"
#include "sim/execution/cluster_run.h"
#include "sim/operations/mbarrier.h"

namespace assay::sim {

namespace {

void check_mbarrier(WarpRun& w, std::uint32_t lane, std::uint64_t object) {
  if (object % sizeof(std::uint64_t) != 0) {
    fail(w, FindingKind::misaligned, lane,
         fmt::format("names an mbarrier at offset {} of shared memory, not a multiple of 8",
                     object));
  }
  const std::uint64_t memory = w.block->checker.shared_bytes();
  if (memory < sizeof(std::uint64_t) || object > memory - sizeof(std::uint64_t)) {
    fail(
        w, FindingKind::out_of_bounds, lane,
        fmt::format("names an mbarrier at offset {} of {} bytes of shared memory", object, memory));
  }
}

// The blocks, by rank, that a mask names.
template <class F>
void for_blocks(WarpRun& w, std::uint32_t lane, std::uint32_t mask, F&& f) {
  for (mask &= 0xffff; mask != 0; mask &= mask - 1) {
    std::uint64_t offset = (std::uint64_t(std::countr_zero(mask)) + 1) * kClusterStride;
    f(owner_of(w, lane, offset));
  }
}

}  // namespace

BlockRun& owner_of(WarpRun& w, std::uint32_t lane, std::uint64_t& offset) {
  const std::uint64_t in_window = offset;
  BlockRun* const owner =
      w.block->cluster == nullptr ? w.block : w.block->cluster->owner(*w.block, offset);
  if (owner == nullptr) no_such_block(w, lane, in_window);
  return *owner;
}

BlockRun& target_of(WarpRun& w, std::uint32_t lane, std::uint64_t& to, std::uint64_t& object) {
  BlockRun &target = owner_of(w, lane, to), &holder = owner_of(w, lane, object);
  if (&target != &holder) {
    fail(w, FindingKind::out_of_bounds, lane,
         "copies to the shared memory of one block and names an mbarrier in that of another");
  }
  check_mbarrier(w, lane, object);
  return target;
}

void issue(BlockRun& by, BlockRun& to, const BulkCopy& copy, std::uint64_t object,
           BulkCopies::Contents contents) {
  if (&by == &to && copy.reduction.update == nullptr) {
    by.checker.shared_store_ahead(RangeAccess{AccessKind::store, copy.to, copy.bytes,
                                              contents.data.data(), copy.pc, copy.warp, copy.lane});
  }
  to.bulk.load(by, to, copy, object, std::move(contents));
  if (to.bulk.full()) land_bulk_copies(to, object);
}

void send(WarpRun& w, BlockRun& to, const BulkCopy& copy, std::uint64_t object, bool from_shared) {
  BulkCopies::check_target(*w.block, to, copy);
  issue(*w.block, to, copy, object, BulkCopies::read(*w.block, copy, from_shared));
}

void multicast(WarpRun& w, const BulkCopy& copy, std::uint64_t object, std::uint32_t blocks) {
  for_blocks(w, copy.lane, blocks,
             [&](BlockRun& block) { BulkCopies::check_target(*w.block, block, copy); });
  const BulkCopies::Contents contents = BulkCopies::read(*w.block, copy, false);
  for_blocks(w, copy.lane, blocks,
             [&](BlockRun& block) { issue(*w.block, block, copy, object, contents); });
}

}  // namespace assay::sim
