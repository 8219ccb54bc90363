#include "sim/memory/global_order.h"

#include <algorithm>
#include <limits>

namespace assay::sim {

std::uint32_t BlockClocks::of(std::uint32_t block) const {
  const auto it = std::upper_bound(runs_.begin(), runs_.end(), block,
                                   [](std::uint32_t b, const Run& r) { return b < r.end; });
  return it != runs_.end() && it->begin <= block ? it->clock : 0;
}

BlockClocks BlockClocks::single(std::uint32_t block, std::uint32_t clock) {
  BlockClocks result;
  result.runs_.push_back({block, block + 1, clock});
  return result;
}

void BlockClocks::append(Run r) {
  if (!runs_.empty() && runs_.back().end == r.begin && runs_.back().clock == r.clock) {
    runs_.back().end = r.end;
  } else {
    runs_.push_back(r);
  }
}

BlockClocks BlockClocks::join(const BlockClocks& a, const BlockClocks& b) {
  constexpr Run kNone{std::numeric_limits<std::uint32_t>::max(),
                      std::numeric_limits<std::uint32_t>::max(), 0};
  BlockClocks result;
  result.runs_.reserve(a.runs_.size() + b.runs_.size());
  std::size_t i = 0, j = 0;
  std::uint32_t position = 0;
  while (i < a.runs_.size() || j < b.runs_.size()) {
    const Run x = i < a.runs_.size() ? a.runs_[i] : kNone;
    const Run y = j < b.runs_.size() ? b.runs_[j] : kNone;
    // The next range within which neither changes.
    position = std::max(position, std::min(x.begin, y.begin));
    const bool in_x = x.begin <= position, in_y = y.begin <= position;
    const std::uint32_t end = std::min(in_x ? x.end : x.begin, in_y ? y.end : y.begin);
    result.append({position, end, std::max(in_x ? x.clock : 0, in_y ? y.clock : 0)});
    position = end;
    if (in_x && x.end == end) ++i;
    if (in_y && y.end == end) ++j;
  }
  return result;
}

SharedClocks join(const SharedClocks& a, const SharedClocks& b) {
  if (a == nullptr || a == b) return b;
  if (b == nullptr) return a;
  return std::make_shared<const BlockClocks>(BlockClocks::join(*a, *b));
}

SharedClocks SyncTable::find(std::uint64_t address) const {
  const Shard& s = shards_[address / 4 % shards_.size()];
  const std::lock_guard lock(s.mutex);
  const auto it = s.at.find(address);
  return it == s.at.end() ? nullptr : it->second.all;
}

void SyncTable::release(std::uint64_t address, const SharedClocks& clocks) {
  Shard& s = shards_[address / 4 % shards_.size()];
  const std::lock_guard lock(s.mutex);
  Shard::Released& there = s.at[address];
  if (there.last == clocks) return;  // again, without a fence in between
  there.all = join(there.all, clocks);
  there.last = clocks;
  empty_.store(false, std::memory_order_release);
}

bool BlockOrder::acquire(const SharedClocks& clocks) {
  if (clocks == nullptr || clocks == last_acquired_) return false;
  last_acquired_ = clocks;
  acquired_ = join(acquired_, clocks);
  stale_ = true;
  return true;
}

bool BlockOrder::acquire_reads(const SharedClocks& clocks) {
  if (clocks == nullptr || clocks == last_acquired_reads_) return false;
  last_acquired_reads_ = clocks;
  acquired_reads_ = join(acquired_reads_, clocks);
  return true;
}

SharedClocks BlockOrder::reads(std::uint32_t clock) const {
  return join(acquired_reads_,
              std::make_shared<const BlockClocks>(BlockClocks::single(block_, clock)));
}

void BlockOrder::fence(std::uint32_t clock) {
  released_ =
      join(acquired_, std::make_shared<const BlockClocks>(BlockClocks::single(block_, clock)));
  stale_ = false;
}

}  // namespace assay::sim
