#include "sim/execution/bulk_copies.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sim/execution/block_run.h"

namespace assay::sim {
namespace {

std::byte* host_of(const BlockRun& block, std::uint64_t address, bool shared) {
  return shared ? const_cast<std::byte*>(block.shared.data()) + address
                : reinterpret_cast<std::byte*>(block.global_zero + address);
}

void check(BlockRun& block, const BulkCopy& c, AccessKind kind, const std::byte* value,
           bool shared) {
  const RangeAccess access{kind,  writes(kind) ? c.to : c.from, c.bytes, value, c.pc, c.warp,
                           c.lane};
  if (shared ? block.checker.shared_range(access) : block.checker.global_range(access)) return;
  throw LaunchFailure{
      true, FindingKind::out_of_bounds, block.index, c.warp * kWarpSize + c.lane, c.pc, {}};
}

}  // namespace

void BulkCopies::reset() {
  loads_.clear();
  stores_.clear();
  group_.clear();
}

void BulkCopies::read(BlockRun& block, Pending& p, bool shared) {
  check(block, p.copy, AccessKind::load, nullptr, shared);
  const std::byte* const from = host_of(block, p.copy.from, shared);
  p.data.assign(from, from + p.copy.bytes);
  p.has_read = true;
  if (std::exchange(block.checker.undefined, 0) == 0) return;
  for (std::uint64_t at = 0; at < p.copy.bytes; at += kBulkPiece) {
    p.undefined.push_back(static_cast<std::uint16_t>(
        block.checker.undefined_bytes(shared, p.copy.from + at, kBulkPiece)));
  }
}

void BulkCopies::write(BlockRun& block, Pending& p, bool shared) {
  const BulkCopy& c = p.copy;
  check(block, c, AccessKind::store, p.data.data(), shared);
  std::memcpy(host_of(block, c.to, shared), p.data.data(), p.data.size());
  for (std::size_t piece = 0; piece < p.undefined.size(); ++piece) {
    if (p.undefined[piece] == 0) continue;
    std::array<std::uint64_t, kLanes> address{};
    address[c.lane] = c.to + piece * kBulkPiece;
    const WarpAccess access{AccessKind::store, kBulkPiece, 1u << c.lane, address.data(),
                            nullptr,           c.pc,       c.warp};
    block.checker.store_undefined(shared, access, c.lane, p.undefined[piece]);
  }
}

void BulkCopies::load(BlockRun& block, const BulkCopy& copy, std::uint64_t mbarrier) {
  Pending p;
  p.copy = copy;
  p.mbarrier = mbarrier;
  read(block, p, false);
  loads_.push_back(std::move(p));
}

std::uint64_t BulkCopies::land(BlockRun& block, std::uint64_t mbarrier) {
  std::uint64_t bytes = 0;
  for (Pending& p : loads_) {
    if (p.mbarrier != mbarrier) continue;
    write(block, p, true);
    block.checker.mbarrier_arrive(p.copy.warp, mbarrier);
    bytes += p.copy.bytes;
  }
  std::erase_if(loads_, [&](const Pending& p) { return p.mbarrier == mbarrier; });
  return bytes;
}

void BulkCopies::store(const BulkCopy& copy) {
  Pending p;
  p.copy = copy;
  p.group = group_[copy.warp * kWarpSize + copy.lane];
  stores_.push_back(std::move(p));
}

void BulkCopies::commit(std::uint32_t warp, std::uint32_t lanes) {
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if (((lanes >> lane) & 1u) != 0) ++group_[warp * kWarpSize + lane];
  }
}

void BulkCopies::wait(BlockRun& block, std::uint32_t warp, std::uint32_t lanes,
                      std::uint32_t pending, bool only_read) {
  const auto waits = [&](const Pending& p) {
    return p.copy.warp == warp && ((lanes >> p.copy.lane) & 1u) != 0 &&
           p.group + pending < group_[warp * kWarpSize + p.copy.lane];
  };
  for (Pending& p : stores_) {
    if (!waits(p)) continue;
    if (!p.has_read) read(block, p, true);
    if (!only_read) write(block, p, false);
  }
  if (!only_read) std::erase_if(stores_, waits);
}

void BulkCopies::finish(BlockRun& block) {
  for (Pending& p : stores_) {
    if (!p.has_read) read(block, p, true);
    write(block, p, false);
  }
  reset();
}

}  // namespace assay::sim
