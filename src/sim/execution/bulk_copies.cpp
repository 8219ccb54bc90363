#include "sim/execution/bulk_copies.h"

#include <array>
#include <cstring>
#include <utility>

#include "sim/execution/block_run.h"

namespace assay::sim {
namespace {

std::byte* host_of(BlockRun& block, std::uint64_t address, bool shared) {
  return shared ? block.shared.data() + address
                : reinterpret_cast<std::byte*>(block.global_zero + address);
}

void check(BlockRun& block, const BulkCopy& c, AccessKind kind, const std::byte* value,
           bool shared) {
  const std::uint64_t address = kind == AccessKind::store ? c.to : c.from;
  const RangeAccess access{kind, address, c.bytes, value, c.pc, c.warp, c.lane};
  if (shared ? block.checker.shared_range(access) : block.checker.global_range(access)) return;
  throw LaunchFailure{
      true, FindingKind::out_of_bounds, block.index, c.warp * kWarpSize + c.lane, c.pc, {}};
}

}  // namespace

void BulkCopies::reset() {
  loads_.clear();
  stores_.clear();
  groups_.clear();
  loading_bytes_ = 0;
}

BulkCopies::Contents BulkCopies::read(BlockRun& block, const BulkCopy& c, bool shared) {
  check(block, c, AccessKind::load, nullptr, shared);
  Contents contents;
  const std::byte* const from = host_of(block, c.from, shared);
  contents.data.assign(from, from + c.bytes);
  if (std::exchange(block.checker.undefined, 0) == 0) return contents;
  for (std::uint64_t at = 0; at < c.bytes; at += kBulkPiece) {
    contents.undefined.push_back(
        static_cast<std::uint16_t>(block.checker.undefined_bytes(shared, c.from + at, kBulkPiece)));
  }
  return contents;
}

void BulkCopies::write(BlockRun& block, const BulkCopy& c, const Contents& contents, bool shared) {
  check(block, c, AccessKind::store, contents.data.data(), shared);
  std::memcpy(host_of(block, c.to, shared), contents.data.data(), contents.data.size());
  for (std::size_t piece = 0; piece < contents.undefined.size(); ++piece) {
    if (contents.undefined[piece] == 0) continue;
    std::array<std::uint64_t, kLanes> address{};
    address[c.lane] = c.to + piece * kBulkPiece;
    const WarpAccess access{AccessKind::store, kBulkPiece, 1u << c.lane, address.data(),
                            nullptr,           c.pc,       c.warp};
    block.checker.store_undefined(shared, access, c.lane, contents.undefined[piece]);
  }
}

void BulkCopies::load(BlockRun& block, const BulkCopy& copy, std::uint64_t mbarrier) {
  if (copy.bytes == 0) return;
  const std::uint64_t memory = block.checker.shared_bytes();
  // The check of the write reports it.
  if (copy.to > memory || copy.bytes > memory - copy.to)
    check(block, copy, AccessKind::store, nullptr, true);
  loading_bytes_ += copy.bytes;
  loads_.push_back({copy, mbarrier, read(block, copy, false)});
}

std::uint64_t BulkCopies::land(BlockRun& block, std::uint64_t mbarrier) {
  std::uint64_t bytes = 0;
  for (const Load& l : loads_) {
    if (l.mbarrier != mbarrier) continue;
    write(block, l.copy, l.contents, true);
    block.checker.mbarrier_arrive(l.copy.warp, mbarrier);
    bytes += l.copy.bytes;
  }
  std::erase_if(loads_, [&](const Load& l) { return l.mbarrier == mbarrier; });
  loading_bytes_ -= bytes;
  return bytes;
}

void BulkCopies::complete(BlockRun& block, const Store& s) {
  write(block, s.copy, read(block, s.copy, true), false);
}

void BulkCopies::store(BlockRun& block, const BulkCopy& copy) {
  if (stores_.size() == kMostStores) {
    complete(block, stores_.front());
    stores_.pop_front();
  }
  stores_.push_back({copy, groups_[copy.warp * kWarpSize + copy.lane]});
}

void BulkCopies::commit(std::uint32_t warp, std::uint32_t lanes) {
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if (((lanes >> lane) & 1u) != 0) ++groups_[warp * kWarpSize + lane];
  }
}

void BulkCopies::wait(BlockRun& block, std::uint32_t warp, std::uint32_t lanes,
                      std::uint32_t pending) {
  const auto waits = [&](const Store& s) {
    return s.copy.warp == warp && ((lanes >> s.copy.lane) & 1u) != 0 &&
           s.group + pending < groups_[warp * kWarpSize + s.copy.lane];
  };
  for (const Store& s : stores_) {
    if (waits(s)) complete(block, s);
  }
  std::erase_if(stores_, waits);
}

void BulkCopies::finish(BlockRun& block) {
  for (const Store& s : stores_) complete(block, s);
  reset();
}

}  // namespace assay::sim
