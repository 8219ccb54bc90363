#include "sim/execution/bulk_copies.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sim/execution/block_run.h"
#include "sim/memory/bits.h"

namespace assay::sim {
namespace {

std::byte* host_of(BlockRun& block, std::uint64_t address, bool shared) {
  return shared ? block.shared.data() + address
                : reinterpret_cast<std::byte*>(block.global_zero + address);
}

[[noreturn]] void end_launch(const BlockRun& block, const BulkCopy& c) {
  throw LaunchFailure{
      true, FindingKind::out_of_bounds, block.index, c.warp * kWarpSize + c.lane, c.pc, {}};
}

void check(BlockRun& block, const BulkCopy& c, AccessKind kind, const std::byte* value,
           bool shared) {
  const std::uint64_t address = kind == AccessKind::load ? c.from : c.to;
  const RangeAccess access{kind, address, c.bytes, value, c.pc, c.warp, c.lane};
  if (shared ? block.checker.shared_range(access) : block.checker.global_range(access)) return;
  end_launch(block, c);
}

// Calls allowed(access) for accesses that make up the copy's write, each by up to kLanes lanes with
// `bytes` bytes, as long as it returns true.
template <class F>
void check_by_lanes(const BlockRun& by, const BulkCopy& c, AccessKind kind, std::uint32_t bytes,
                    F&& allowed) {
  for (std::uint64_t at = 0; at < c.bytes; at += std::uint64_t{kLanes} * bytes) {
    std::array<std::uint64_t, kLanes> address{};
    for (std::uint32_t l = 0; l < kLanes; ++l) address[l] = c.to + at + l * bytes;
    const auto mask = static_cast<std::uint32_t>(low_bits((c.bytes - at) / bytes));
    if (!allowed({kind, bytes, mask, address.data(), nullptr, c.pc, c.warp, c.lane}))
      end_launch(by, c);
  }
}

// Where what has this offset in the box of a copy's tensor lies in the copy's contents, which are
// in the order of the shared memory that begins at `shared`.
std::uint64_t place_in_tile(const BulkCopy& c, std::uint64_t shared, std::uint64_t offset) {
  return swizzled(c.tile->map.swizzle, shared + offset) - shared;
}

WarpAccess access_tile(BlockRun& block, const BulkCopy& c, const TilePieces& pieces,
                       AccessKind kind, const std::byte* values) {
  const WarpAccess access{kind,   pieces.bytes, pieces.mask(), pieces.address.data(),
                          values, c.pc,         c.warp,        c.lane};
  if (!block.checker.global(access)) end_launch(block, c);
  return access;
}

}  // namespace

void BulkCopies::reset() {
  loads_.clear();
  stores_.clear();
  groups_.clear();
  loading_bytes_ = 0;
}

BulkCopies::Contents BulkCopies::read(BlockRun& block, const BulkCopy& c, bool shared) {
  if (!shared && c.tile != nullptr) return read_tile(block, c);
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

void BulkCopies::put(BlockRun& block, const BulkCopy& c, const Contents& contents, bool shared) {
  std::byte* const to = host_of(block, c.to, shared);
  if (c.reduction.update != nullptr) {
    c.reduction.update(to, contents.data.data(), c.bytes, !shared && block.grid->parallel);
  } else {
    std::memcpy(to, contents.data.data(), contents.data.size());
  }
  for (std::size_t piece = 0; piece < contents.undefined.size(); ++piece) {
    if (contents.undefined[piece] == 0) continue;
    std::array<std::uint64_t, kLanes> address{};
    address[c.lane] = c.to + piece * kBulkPiece;
    const WarpAccess access{AccessKind::store, kBulkPiece, 1u << c.lane, address.data(),
                            nullptr,           c.pc,       c.warp};
    block.checker.store_undefined(shared, access, c.lane, contents.undefined[piece]);
  }
}

void BulkCopies::check_target(BlockRun& by, BlockRun& to, const BulkCopy& copy) {
  if (&by == &to) {
    const std::uint64_t memory = by.checker.shared_bytes();
    // The check of the write reports it.
    if (copy.to > memory || copy.bytes > memory - copy.to)
      check(by, copy, AccessKind::store, nullptr, true);
    return;
  }
  const bool reduces = copy.reduction.update != nullptr;
  by.checker.cluster_ordered_otherwise();
  check_by_lanes(by, copy, reduces ? AccessKind::reduction : AccessKind::store,
                 reduces
                     ? copy.reduction.word_bytes
                     : static_cast<std::uint32_t>(std::min<std::uint64_t>(copy.bytes, kBulkPiece)),
                 [&](const WarpAccess& a) { return by.checker.shared_of(to.checker, a); });
}

void BulkCopies::load(BlockRun& by, BlockRun& to, const BulkCopy& copy, std::uint64_t mbarrier,
                      Contents contents) {
  loading_bytes_ += copy.bytes;
  loads_.push_back({copy, mbarrier, &by != &to, std::move(contents)});
}

void BulkCopies::taint(std::size_t later, std::uint16_t bytes) {
  if (later >= loads_.size()) return;  // so many were on their way that it is complete
  loads_[loads_.size() - 1 - later].contents.undefined.assign(1, bytes);
}

std::uint64_t BulkCopies::land(BlockRun& block, std::uint64_t mbarrier) {
  std::uint64_t bytes = 0;
  for (const Load& l : loads_) {
    if (l.mbarrier != mbarrier) continue;
    if (l.from_another_block) {
      put(block, l.copy, l.contents, true);
    } else {
      write_shared(block, l.copy, l.contents);
      block.checker.mbarrier_arrive(l.copy.warp, mbarrier);
    }
    bytes += l.copy.bytes;
  }
  std::erase_if(loads_, [&](const Load& l) { return l.mbarrier == mbarrier; });
  loading_bytes_ -= bytes;
  return bytes;
}

void BulkCopies::write_shared(BlockRun& block, const BulkCopy& c, const Contents& contents) {
  if (c.reduction.update == nullptr) {
    check(block, c, AccessKind::store, contents.data.data(), true);
  } else {
    check_by_lanes(block, c, AccessKind::reduction, c.reduction.word_bytes,
                   [&](const WarpAccess& a) { return block.checker.shared(a); });
  }
  put(block, c, contents, true);
}

// The contents as they lie in shared memory.
BulkCopies::Contents BulkCopies::read_tile(BlockRun& block, const BulkCopy& c) {
  Contents contents;
  contents.data.resize(c.bytes);
  for_pieces(*c.tile, [&](const TilePieces& p) {
    access_tile(block, c, p, AccessKind::load, nullptr);
    const bool undefined = std::exchange(block.checker.undefined, 0) != 0;
    if (undefined) contents.undefined.resize(c.bytes / kBulkPiece);
    for (std::uint32_t i = 0; i < p.count; ++i) {
      const std::uint64_t to = place_in_tile(c, c.to, p.offset[i]);
      std::memcpy(contents.data.data() + to, host_of(block, p.address[i], false), p.bytes);
      if (!undefined) continue;
      const std::uint32_t bits = block.checker.undefined_bytes(false, p.address[i], p.bytes);
      contents.undefined[to / kBulkPiece] |= static_cast<std::uint16_t>(bits << to % kBulkPiece);
    }
  });
  return contents;
}

void BulkCopies::write_tile(BlockRun& block, const BulkCopy& c, const Contents& contents) {
  const bool reduces = c.reduction.update != nullptr;
  for_pieces(*c.tile, [&](const TilePieces& p) {
    std::array<std::byte, std::size_t{kLanes} * kBulkPiece> values;
    std::array<std::uint32_t, kLanes> undefined{};
    for (std::uint32_t i = 0; i < p.count; ++i) {
      const std::uint64_t from = place_in_tile(c, c.from, p.offset[i]);
      std::memcpy(values.data() + std::size_t{i} * p.bytes, contents.data.data() + from, p.bytes);
      if (contents.undefined.empty()) continue;
      const std::uint32_t bits = contents.undefined[from / kBulkPiece];
      undefined[i] = bits >> from % kBulkPiece & ((1u << p.bytes) - 1);
    }
    const AccessKind kind = reduces ? AccessKind::reduction : AccessKind::store;
    const WarpAccess access = access_tile(block, c, p, kind, reduces ? nullptr : values.data());
    for (std::uint32_t i = 0; i < p.count; ++i) {
      std::byte* const to = host_of(block, p.address[i], false);
      const std::byte* const value = values.data() + std::size_t{i} * p.bytes;
      if (reduces) {
        c.reduction.update(to, value, p.bytes, block.grid->parallel);
      } else {
        std::memcpy(to, value, p.bytes);
      }
      if (undefined[i] != 0) block.checker.store_undefined(false, access, i, undefined[i]);
    }
  });
}

void BulkCopies::complete(BlockRun& block, const Store& s) {
  const Contents contents = read(block, s.copy, true);
  if (s.copy.tile != nullptr) return write_tile(block, s.copy, contents);
  const bool reduces = s.copy.reduction.update != nullptr;
  check(block, s.copy, reduces ? AccessKind::reduction : AccessKind::store,
        reduces ? nullptr : contents.data.data(), false);
  put(block, s.copy, contents, false);
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
