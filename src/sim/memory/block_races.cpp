#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/memory/chunk_lock.h"
#include "sim/memory/global_races.h"

namespace assay::sim {
namespace {

using namespace shadow;

// Merges two accesses by one block: keeps the first, unless the second found its bytes
// uninitialised. Takes the later segment if that is right for all bytes.
ShadowEntry merged(ShadowEntry first, ShadowEntry second) {
  const bool take = (second & kUninitialised & ~first) != 0;
  const ShadowEntry rest = ~(~ShadowEntry{0} << kSegmentShift);
  const bool covers = (first & ~second & kAllBytes) == 0;
  const std::uint32_t segment =
      covers ? std::max(segment_of(first), segment_of(second)) : segment_of(first);
  return at_segment(segment) | ((take ? second : first) & rest) | ((first | second) & kAllBytes);
}

}  // namespace

void BlockRaces::begin_block(std::uint32_t block) {
  block_ = block;
  segment_ = grid_.first_ + block;
  clock_ = 0;
  used_ = split_ = acquired_flag_ = false;
  order_.begin(block);
}

void BlockRaces::fence() {
  const bool first = order_.released() == nullptr;
  if (!used_ && !split_ && !first && !order_.is_stale()) return;
  if (used_ || split_ || first) {
    // What is released now ends with this segment; the next one begins.
    closed_segment_ = segment_;
    segment_ = shadow_.next_segment(segment_, block_, ++clock_);
    used_ = split_ = false;
  }
  order_.fence(clock_);
}

void BlockRaces::acquire(const WarpAccess& a) {
  if (grid_.released_.empty() && grid_.read_.empty()) return;
  for_runs(a, [&](std::uint32_t, std::uint32_t, std::uint64_t address) {
    const bool more = order_.acquire(grid_.released_.find(address));
    if (!order_.acquire_reads(grid_.read_.find(address)) && !more) return;
    acquired_flag_ = true;
    grid_.become_ordered();
  });
}

void BlockRaces::release_at(std::uint64_t barrier) {
  fence();
  if (order_.released() != nullptr) grid_.released_.release(barrier, order_.released());
}

void BlockRaces::acquire_at(std::uint64_t barrier) {
  if (order_.acquire(grid_.released_.find(barrier))) grid_.become_ordered();
}

// The block stores a flag: what it read before counts as done, even without a fence.
void BlockRaces::release_reads(const WarpAccess& a) {
  if (used_) {
    segment_ = shadow_.next_segment(segment_, block_, ++clock_);
    used_ = false;
    split_ = true;
  }
  const SharedClocks reads = order_.reads(clock_);
  for_runs(a, [&](std::uint32_t, std::uint32_t, std::uint64_t address) {
    grid_.read_.release(address, reads);
  });
}

void BlockRaces::release(const WarpAccess& a) {
  if (order_.released() == nullptr) return;
  for_runs(a, [&](std::uint32_t, std::uint32_t, std::uint64_t address) {
    grid_.released_.release(address, order_.released());
  });
}

// Whether there is nothing to do. Reads without the lock: entries are aligned words, which are
// never torn, and a thread that adds something later notices it itself.
bool BlockRaces::quick(const Current& c, const Range& r) const {
  ShadowEntry* const* const pair = c.write ? shadow_.words().write : shadow_.words().other;
  const ShadowEntry *low = pair[0] + r.word, *high = pair[1] + r.word;
  const auto not_mine = [=](ShadowEntry e) { return c.not_mine(e); };
  const auto not_lower = [=](ShadowEntry e) { return c.not_lower(e); };
  // The first word tells which of the two it can be.
  if (not_mine(low[0]) == 0) {
    if (any_bits(low, r.count, not_mine) != 0) return false;
    if (!c.write) return true;
    const auto alike = [](ShadowEntry e) { return ~e & kDiffers; };
    if (!c.ordered && any_bits(low, r.count, alike) == 0) return true;
    return r.values != nullptr &&
           std::memcmp(shadow_.values() + r.word, r.values, r.count * RaceShadow::kWordBytes) == 0;
  }
  if (c.write || low[0] < c.past) return false;
  if (not_mine(high[0]) == 0) return any_bits(high, r.count, not_mine) == 0;
  return c.may_skip_lower && not_lower(low[0]) == 0 && not_lower(high[0]) == 0 &&
         (any_bits(low, r.count, not_lower) | any_bits(high, r.count, not_lower)) == 0;
}

// Likewise for lanes that access one word each.
bool BlockRaces::quick_scattered(const Current& c, const LaneAddresses& lanes) const {
  ShadowEntry* const* const pair = c.write ? shadow_.words().write : shadow_.words().other;
  ShadowEntry low[kLanes], high[kLanes];
  for (unsigned i = 0; i < kLanes; ++i) low[i] = pair[0][RaceShadow::word_of(lanes.v[i])];
  const auto not_mine = [=](ShadowEntry e) { return c.not_mine(e); };
  const auto not_lower = [=](ShadowEntry e) { return c.not_lower(e); };
  if (not_mine(low[0]) == 0) {
    if (any_bits(low, kLanes, not_mine) != 0) return false;
    if (!c.write) return true;
    const auto alike = [](ShadowEntry e) { return ~e & kDiffers; };
    if (!c.ordered && any_bits(low, kLanes, alike) == 0) return true;
    return holds_values(*c.access, lanes);
  }
  if (!c.may_skip_lower || any_bits(low, kLanes, not_lower) != 0) return false;
  for (unsigned i = 0; i < kLanes; ++i) high[i] = pair[1][RaceShadow::word_of(lanes.v[i])];
  return any_bits(high, kLanes, not_lower) == 0;
}

// Whether all words of the access hold the values that it writes. It has one word per lane.
bool BlockRaces::holds_values(const WarpAccess& a, const LaneAddresses& lanes) const {
  if (a.value == nullptr) return false;
  const auto* const values = static_cast<const std::byte*>(a.value);
  const std::uint32_t* const held = shadow_.values();
  const auto first = static_cast<unsigned>(std::countr_zero(a.mask));
  std::uint32_t differ = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    const unsigned lane = ((a.mask >> i) & 1u) != 0 ? i : first;
    std::uint32_t value;
    std::memcpy(&value, values + lane * sizeof value, sizeof value);
    differ |= value ^ held[RaceShadow::word_of(lanes.v[i])];
  }
  return differ == 0;
}

void BlockRaces::range(const Current& c, const Range& r) {
  if (quick(c, r)) return;
  const ChunkLock lock(shadow_.chunk(r.word), grid_.concurrent_);
  if (c.write && all_mine(c, r)) return write_again(c, r);
  if (c.ordered ? follow_range(c, r) : collect_range(c, r)) {
    mark(c, r.word);
    return;
  }
  for (std::size_t i = 0; i < r.count; ++i) {
    std::uint32_t value = 0;
    if (r.values != nullptr) std::memcpy(&value, r.values + i * sizeof value, sizeof value);
    word(c, r.word + i, c.entry | kAllBytes | r.thread_of(i), value);
  }
}

bool BlockRaces::access(const WarpAccess& a, const LanePattern& p, std::uint32_t uninitialised) {
  const bool atomic = is_atomic(a.kind);
  if (reads(a.kind) && atomic && a.kind != AccessKind::reduction) acquire(a);
  const bool releases = atomic && writes(a.kind) && order_.released() != nullptr;
  if (a.kind == AccessKind::atomic_store) release_reads(a);

  Current c;
  c.access = &a;
  c.write = a.kind == AccessKind::store;
  c.ordered = grid_.ordered_.load(std::memory_order_acquire);
  c.may_skip_lower = !c.write && !c.ordered;
  c.past = grid_.past_;
  c.here = at_segment(grid_.first_ + block_);
  // Those who acquire an atomic write that releases also know of the write itself: the last block
  // to increment a completion counter may reset it.
  c.entry = at_segment(releases ? closed_segment_ : segment_) | kind_bits(a.kind) |
            (ShadowEntry{std::min(a.pc, kMaxPc)} << kPcShift);
  if (c.write) {
    c.values = static_cast<const std::byte*>(a.value);
    if (c.values == nullptr) c.entry |= kDiffers;
  }
  used_ = true;

  const std::uint64_t end = p.end(a);
  if (p.contiguous && !atomic && uninitialised == 0 && p.low % 4 == 0 && end % 4 == 0) {
    const auto size = static_cast<unsigned>(std::countr_zero(a.bytes));
    const unsigned up = size < 2 ? 2 - size : 0, down = size > 2 ? size - 2 : 0;
    const std::uint64_t last = RaceShadow::word_of(end);
    const std::uint64_t begin = RaceShadow::word_of(p.low);
    Range r{begin, 0, a.warp * kLanes + p.first, up, down, nullptr};
    if (c.values != nullptr) r.values = c.values + std::size_t{p.first} * a.bytes;
    while (r.word < last) {
      r.count =
          std::min(last, (r.word / RaceShadow::kChunkWords + 1) * RaceShadow::kChunkWords) - r.word;
      range(c, r);
      r.thread = r.thread_of(r.count);
      r.word += r.count;
      if (r.values != nullptr) r.values += r.count * RaceShadow::kWordBytes;
    }
  } else {
    if (c.ordered) uninitialised = 0;
    const bool words = a.bytes == RaceShadow::kWordBytes && uninitialised == 0 && !p.uniform;
    if (!words || !quick_scattered(c, LaneAddresses(a))) {
      lanes(c, p.uniform ? a.mask & -a.mask : a.mask, uninitialised);
    }
  }
  if (releases) release(a);
  return !c.ordered;
}

// Marks the chunk, for those who need not look at its words.
void BlockRaces::mark(const Current& c, std::uint64_t word) {
  RaceShadow::Chunk& chunk = shadow_.chunk(word);
  (c.write ? chunk.written : chunk.touched) = grid_.first_;
}

// Lane by lane. Adjacent lanes with the same word are handled together.
void BlockRaces::lanes(const Current& c, std::uint32_t mask, std::uint32_t uninitialised) {
  const WarpAccess& a = *c.access;
  std::uint64_t held = ~std::uint64_t{0};  // word
  ShadowEntry entry = 0;
  std::uint32_t value = 0;  // of a write, in the entry's bytes
  ShadowEntry* const* const pair = c.write ? shadow_.words().write : shadow_.words().other;
  const auto covered_by = [&](ShadowEntry e) { return (entry & ~e & kAllBytes) == 0; };
  // As quick() does.
  const auto is_known = [&] {
    const ShadowEntry low = pair[0][held], high = pair[1][held];
    if ((entry & kUninitialised) != 0 || !covered_by(low)) return false;
    if ((low ^ entry) >> kSegmentShift == 0) {
      if (!c.write || (!c.ordered && (low & kDiffers) != 0)) return true;
      return c.values != nullptr && ((shadow_.values()[held] ^ value) & bits_of_bytes(entry)) == 0;
    }
    return c.may_skip_lower && c.not_lower(low | kAllBytes) == 0 &&
           c.not_lower(high | kAllBytes) == 0 && covered_by(high);
  };
  const auto flush = [&] {
    if (entry != 0 && !is_known()) {
      const ChunkLock lock(shadow_.chunk(held), grid_.concurrent_);
      word(c, held, entry, value);
    }
    entry = 0;
    value = 0;
  };
  // What the lane writes to its word `w`; its first word is `first`.
  const auto written = [&](std::uint32_t lane, std::uint64_t w, std::uint64_t first) {
    std::uint32_t bits = 0;
    const std::size_t part = std::min<std::size_t>(a.bytes, sizeof bits);
    std::memcpy(&bits, c.values + std::size_t{lane} * a.bytes + (w - first) * sizeof bits, part);
    return part == sizeof bits ? bits : bits << 8 * (a.address[lane] % 4);
  };
  for_lanes(mask, [&](std::uint32_t lane) {
    const std::uint64_t address = a.address[lane], first = RaceShadow::word_of(address);
    const std::uint64_t words = std::max<std::uint64_t>(1, a.bytes / RaceShadow::kWordBytes);
    const ShadowEntry bytes =
        a.bytes >= 4 ? kAllBytes : ShadowEntry{(1u << a.bytes) - 1} << (kBytesShift + address % 4);
    const bool fresh = ((uninitialised >> lane) & 1u) != 0;
    for (std::uint64_t w = first; w < first + words; ++w) {
      if (w != held) flush();
      held = w;
      if (entry == 0) entry = c.entry | (a.warp * kLanes + lane);
      if (fresh && (entry & kUninitialised) == 0) {
        entry = (entry & kAllBytes) | c.entry | kUninitialised | (a.warp * kLanes + lane);
      }
      entry |= bytes;
      if (c.values != nullptr) {
        const std::uint32_t there = bits_of_bytes(bytes);
        value = (value & ~there) | (written(lane, w, first) & there);
      }
    }
  });
  flush();
}

// The chunk is locked.
void BlockRaces::word(const Current& c, std::uint64_t word, ShadowEntry e, std::uint32_t value) {
  mark(c, word);
  if (c.ordered) {
    follow(c, word, e, value);
  } else {
    collect(c, word, e, value);
  }
  if (!c.write) return;
  std::uint32_t& held = shadow_.values()[word];
  held = (held & ~bits_of_bytes(e)) | (value & bits_of_bytes(e));
}

// All blocks are unordered: keeps the two lowest.
void BlockRaces::collect(const Current& c, std::uint64_t word, ShadowEntry e, std::uint32_t value) {
  const auto& all = shadow_.words();
  const ShadowEntry past = grid_.past_;
  const auto conflicts = [&](ShadowEntry* const* pair) {
    for (int i = 0; i < 2; ++i) {
      const ShadowEntry x = pair[i][word];
      if (x < past) return false;
      if (overlap(x, e) && shadow_.block_of(x) != block_) return true;
    }
    return false;
  };
  if ((e & kUninitialised) != 0 || conflicts(all.write) || (c.write && conflicts(all.other))) {
    grid_.flag(word);
  }

  ShadowEntry* const* const pair = c.write ? all.write : all.other;
  ShadowEntry &low = pair[0][word], &high = pair[1][word];
  const bool no_low = low < past, no_high = no_low || high < past;
  const ShadowEntry before = (no_low ? 0 : low) | (no_high ? 0 : high);
  if (c.write && ((shadow_.values()[word] ^ value) & bits_of_bytes(before & e)) != 0) e |= kDiffers;
  // Two facts survive when the block's entry is dropped: that the first access found the word
  // uninitialised, and that its writers differ.
  const ShadowEntry fresh = (e | before) & (c.write ? kUninitialised | kDiffers : kUninitialised);
  const std::uint32_t low_block = no_low ? 0 : shadow_.block_of(low);
  if (no_low) {
    low = e;
  } else if (low_block == block_) {
    low = merged(low, e);
  } else if (block_ < low_block) {
    high = low;
    low = e;
  } else if (const std::uint32_t high_block = no_high ? 0 : shadow_.block_of(high);
             !no_high && high_block == block_) {
    high = merged(high, e);
  } else if (no_high || block_ < high_block) {
    high = e;
  }
  low |= fresh;
}

// Some blocks are ordered: drops what is ordered before this access and lies within it.
void BlockRaces::follow(const Current& c, std::uint64_t word, ShadowEntry e, std::uint32_t value) {
  const auto& all = shadow_.words();
  const ShadowEntry past = grid_.past_;
  const auto visit = [&](ShadowEntry* const* pair, bool conflicts, bool is_write) {
    for (int i = 0; i < 2; ++i) {
      ShadowEntry& x = pair[i][word];
      if (x < past) break;
      const bool before = is_ordered(x, !is_write && kind_of(x) == AccessKind::load);
      if (!before && conflicts && overlap(x, e)) {
        const std::uint32_t differ = (shadow_.values()[word] ^ value) & bits_of_bytes(x & e);
        const bool equal = c.write && is_write && ((x | e) & kDiffers) == 0 && differ == 0;
        report(c, equal ? FindingKind::equal_stores : FindingKind::global_race, e, x, is_write);
      }
      // A releasing atomic operation counts as done before what the block did since its fence.
      const bool newer = before && segment_of(x) > segment_of(e) && shadow_.block_of(x) == block_;
      if (before && !newer && (c.write || !is_write) && (x & ~e & kAllBytes) == 0) x = 0;
    }
    if (pair[0][word] < past && pair[1][word] >= past) std::swap(pair[0][word], pair[1][word]);
  };
  // The second entry only counts if there is a first.
  for (ShadowEntry* const* pair : {all.write, all.other}) {
    if (pair[0][word] < past) pair[1][word] = 0;
  }
  visit(all.write, true, true);
  visit(all.other, c.write, false);
  ShadowEntry* const* const pair = c.write ? all.write : all.other;
  ShadowEntry& low = pair[0][word];
  if (low < past) {
    low = e;
  } else {
    pair[1][word] = e;
  }
}

bool BlockRaces::is_ordered(ShadowEntry e, bool is_read) const {
  const RaceShadow::Owner o = shadow_.owner(segment_of(e));
  return is_read ? order_.knows_read(o.block, o.clock) : order_.knows(o.block, o.clock);
}

void BlockRaces::report(const Current& c, FindingKind kind, ShadowEntry mine, ShadowEntry other,
                        bool other_writes) {
  RawFinding f;
  f.kind = kind;
  f.pc = c.access->pc;
  f.block = block_;
  f.thread = thread_of(mine);
  f.access = c.access->kind;
  f.address = c.access->address[f.thread % kLanes];
  f.bytes = c.access->bytes;
  f.other_pc = pc_of(other);
  f.other_block = shadow_.block_of(other);
  f.other_thread = thread_of(other);
  f.other_access = other_writes ? AccessKind::store : kind_of(other);
  grid_.findings_.add(f);
}

}  // namespace assay::sim
