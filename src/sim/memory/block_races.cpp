#include <algorithm>
#include <bit>

#include "sim/memory/chunk_lock.h"
#include "sim/memory/global_races.h"

namespace assay::sim {
namespace {

using namespace shadow;

constexpr unsigned kChunkWords = RaceShadow::kChunkWords;

// Two accesses of one block: the first stays, unless the second found its bytes uninitialised. The
// segment is the later one if that is right for all bytes.
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
  used_ = false;
  order_.begin(block);
}

void BlockRaces::fence() {
  const bool first = order_.released() == nullptr;
  if (!used_ && !first && !order_.is_stale()) return;
  if (used_ || first) {
    // What is released now ends with the segment; the next one begins.
    closed_segment_ = segment_;
    segment_ = shadow_.next_segment(segment_, block_, ++clock_);
    used_ = false;
  }
  order_.fence(clock_);
}

void BlockRaces::acquire(const WarpAccess& a) {
  if (grid_.released_.empty()) return;
  for_runs(a, [&](std::uint32_t, std::uint32_t, std::uint64_t address) {
    if (order_.acquire(grid_.released_.find(address))) grid_.become_ordered();
  });
}

void BlockRaces::release(const WarpAccess& a) {
  if (order_.released() == nullptr) return;
  for_runs(a, [&](std::uint32_t, std::uint32_t, std::uint64_t address) {
    grid_.released_.release(address, order_.released());
  });
}

bool BlockRaces::access(const WarpAccess& a, const LanePattern& p, std::uint32_t uninitialised) {
  const bool atomic = is_atomic(a.kind);
  if (a.kind == AccessKind::atomic || a.kind == AccessKind::atomic_load) acquire(a);
  const bool releases = atomic && writes(a.kind) && order_.released() != nullptr;

  Current c;
  c.access = &a;
  c.write = a.kind == AccessKind::store;
  c.ordered = grid_.ordered_.load(std::memory_order_acquire);
  // An atomic write that releases is itself known to those who acquire there: with a counter of
  // those who are done, the last may set it back.
  c.entry = at_segment(releases ? closed_segment_ : segment_) | kind_bits(a.kind) |
            (ShadowEntry{std::min(a.pc, kMaxPc)} << kPcShift);
  used_ = true;

  const std::uint64_t end = p.end(a);
  if (p.contiguous && !atomic && uninitialised == 0 && p.low % 4 == 0 && end % 4 == 0) {
    const auto size = static_cast<unsigned>(std::countr_zero(a.bytes));
    const unsigned up = size < 2 ? 2 - size : 0, down = size > 2 ? size - 2 : 0;
    const std::uint64_t last = RaceShadow::word_of(end);
    const std::uint64_t begin = RaceShadow::word_of(p.low);
    Range r{begin, 0, a.warp * kLanes + p.first, up, down};
    while (r.word < last) {
      r.count = std::min(last, (r.word / kChunkWords + 1) * kChunkWords) - r.word;
      range(c, r);
      r.thread = r.thread_of(r.count);
      r.word += r.count;
    }
  } else {
    lanes(c, c.ordered ? 0 : uninitialised);
  }
  if (releases) release(a);
  return !c.ordered;
}

void BlockRaces::range(const Current& c, const Range& r) {
  if (quick(c, r)) return;
  const ChunkLock lock(shadow_.chunk(r.word), grid_.concurrent_);
  if (c.ordered ? follow_range(c, r) : collect_range(c, r)) {
    mark(c, r.word);
    return;
  }
  for (std::size_t i = 0; i < r.count; ++i) {
    word(c, r.word + i, c.entry | kAllBytes | r.thread_of(i));
  }
}

// In the chunk: for those who need not look at its words.
void BlockRaces::mark(const Current& c, std::uint64_t word) {
  RaceShadow::Chunk& chunk = shadow_.chunk(word);
  (c.write ? chunk.written : chunk.touched) = grid_.first_;
}

// Lane by lane. Neighbours that access one word come together.
void BlockRaces::lanes(const Current& c, std::uint32_t uninitialised) {
  const WarpAccess& a = *c.access;
  std::uint64_t held = ~std::uint64_t{0};  // word
  ShadowEntry entry = 0;
  const auto flush = [&] {
    if (entry == 0) return;
    const ShadowEntry* const mine = (c.write ? shadow_.words().write : shadow_.words().other)[0];
    const ShadowEntry same = mine[held] ^ entry;
    const bool known = (same >> kSegmentShift) == 0 && (entry & kUninitialised) == 0 &&
                       (entry & ~mine[held] & kAllBytes) == 0;
    if (!known) {
      const ChunkLock lock(shadow_.chunk(held), grid_.concurrent_);
      word(c, held, entry);
    }
    entry = 0;
  };
  for_lanes(a.mask, [&](std::uint32_t lane) {
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
    }
  });
  flush();
}

// The chunk is locked.
void BlockRaces::word(const Current& c, std::uint64_t word, ShadowEntry e) {
  mark(c, word);
  if (c.ordered) {
    follow(c, word, e);
  } else {
    collect(c, word, e);
  }
}

// All blocks are unordered: the two lowest stay.
void BlockRaces::collect(const Current& c, std::uint64_t word, ShadowEntry e) {
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
  // A word is uninitialised for whoever comes first: it stays known when that block makes room.
  const ShadowEntry fresh = (e | (no_low ? 0 : low) | (no_high ? 0 : high)) & kUninitialised;
  const std::uint32_t low_block = no_low ? 0 : shadow_.block_of(low);
  if (no_low) {
    low = e;
  } else if (low_block == block_) {
    low = merged(low, e);
  } else if (block_ < low_block) {
    high = low;
    low = e;
  } else if (no_high) {
    high = e;
  } else if (const std::uint32_t high_block = shadow_.block_of(high); high_block == block_) {
    high = merged(high, e);
  } else if (block_ < high_block) {
    high = e;
  }
  low |= fresh;
}

// Some blocks are ordered: what is ordered before this access and lies within it makes room.
void BlockRaces::follow(const Current& c, std::uint64_t word, ShadowEntry e) {
  const auto& all = shadow_.words();
  const ShadowEntry past = grid_.past_;
  const auto visit = [&](ShadowEntry* const* pair, bool conflicts, bool is_write) {
    for (int i = 0; i < 2; ++i) {
      ShadowEntry& x = pair[i][word];
      if (x < past) break;
      const bool before = is_ordered(x);
      if (!before && conflicts && overlap(x, e)) report(c, e, x, is_write);
      // A releasing atomic operation counts as done before what the block did since its fence.
      const bool newer = before && segment_of(x) > segment_of(e) && shadow_.block_of(x) == block_;
      if (before && !newer && (c.write || !is_write) && (x & ~e & kAllBytes) == 0) x = 0;
    }
    if (pair[0][word] < past && pair[1][word] >= past) std::swap(pair[0][word], pair[1][word]);
  };
  // The second entry counts only if there is a first.
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

bool BlockRaces::is_ordered(ShadowEntry e) const {
  const RaceShadow::Owner o = shadow_.owner(segment_of(e));
  return order_.knows(o.block, o.clock);
}

void BlockRaces::report(const Current& c, ShadowEntry mine, ShadowEntry other, bool other_writes) {
  RawFinding f;
  f.kind = FindingKind::global_race;
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
