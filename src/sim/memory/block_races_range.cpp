// Accesses of consecutive words, which are most: what they have in common is found with vectors.
#include <algorithm>

#include "sim/memory/chunk_lock.h"
#include "sim/memory/global_races.h"

namespace assay::sim {
namespace {

using namespace shadow;

template <class F>
bool all_of(const ShadowEntry* e, std::size_t count, F&& f) {
  std::uint64_t others = 0;  // counted, so that the loop is one of vectors
  for (std::size_t i = 0; i < count; ++i) others += f(e[i]) ? 0u : 1u;
  return others == 0;
}

}  // namespace

void BlockRaces::fill(ShadowEntry* list, const Range& r, ShadowEntry entry) {
  const ShadowEntry e = entry | kAllBytes | r.thread;
  for (std::size_t i = 0; i < r.count; ++i) list[r.word + i] = e + ((i << r.up) >> r.down);
}

// Whether there is nothing to do. Looks without the lock: entries are aligned words, which are
// never torn, and what appears later is seen by whoever puts it there.
bool BlockRaces::quick(const Current& c, const Range& r) const {
  // Done before in this segment. Conflicts since then were seen by the other side.
  const ShadowEntry mine = (c.entry >> kSegmentShift << kSegmentShift) | kAllBytes;
  const ShadowEntry mask = (~ShadowEntry{0} << kSegmentShift) | kAllBytes;
  const auto is_mine = [=](ShadowEntry e) { return (e & mask) == mine; };
  ShadowEntry* const* const pair = c.write ? shadow_.words().write : shadow_.words().other;
  if (all_of(pair[0] + r.word, r.count, is_mine)) return true;
  if (c.write) return false;
  // Two lower blocks have read it, or another and this one.
  const ShadowEntry first = grid_.past_, here = at_segment(grid_.first_ + block_);
  const auto is_lower = [=](ShadowEntry e) {
    return (e >= first) & (e < here) & ((e & kAllBytes) == kAllBytes);
  };
  if (all_of(pair[1] + r.word, r.count, is_mine)) return true;
  return !c.ordered && all_of(pair[0] + r.word, r.count, is_lower) &&
         all_of(pair[1] + r.word, r.count, is_lower);
}

// Words that are all alike, while blocks are unordered; false: look at each.
bool BlockRaces::collect_range(const Current& c, const Range& r) {
  const RaceShadow::Chunk& chunk = shadow_.chunk(r.word);
  const auto& all = shadow_.words();
  const ShadowEntry past = grid_.past_;
  const auto is_past = [=](ShadowEntry e) { return e < past; };
  if (c.write) {
    const ShadowEntry own = at_segment(segment_), after = at_segment(segment_ + 1);
    if (chunk.touched == grid_.first_) {
      // Only this segment may have read them.
      const auto is_own = [=](ShadowEntry e) { return (e < past) | ((e >= own) & (e < after)); };
      if (!all_of(all.other[0] + r.word, r.count, is_own)) return false;
      if (!all_of(all.other[1] + r.word, r.count, is_past)) return false;
    }
    if (!all_of(all.write[0] + r.word, r.count, is_past)) return false;
    fill(all.write[0], r, c.entry);
    return true;
  }
  if (chunk.written == grid_.first_) return false;
  if (all_of(all.other[0] + r.word, r.count, is_past)) {
    fill(all.other[0], r, c.entry);
    return true;
  }
  // Read by one lower block before.
  const ShadowEntry here = at_segment(grid_.first_ + block_);
  const auto is_lower = [=](ShadowEntry e) {
    return (e >= past) & (e < here) & ((e & kAllBytes) == kAllBytes);
  };
  if (!all_of(all.other[0] + r.word, r.count, is_lower)) return false;
  if (!all_of(all.other[1] + r.word, r.count, is_past)) return false;
  fill(all.other[1], r, c.entry);
  return true;
}

// Words in one chunk with the same history, in a grid with order; false: look at each.
bool BlockRaces::follow_range(const Current& c, const Range& r) {
  // One entry that stands for all of a list, 0 for none; false if there is no such.
  const auto common = [&](const ShadowEntry* list, ShadowEntry& entry) {
    const ShadowEntry first = list[r.word], past = grid_.past_;
    entry = first < past ? 0 : first;
    if (entry == 0) return all_of(list + r.word, r.count, [=](ShadowEntry e) { return e < past; });
    return all_of(list + r.word, r.count, [=](ShadowEntry e) {
      return ((e ^ first) >> kSegmentShift == 0) & ((e & kAllBytes) == kAllBytes);
    });
  };
  const auto& all = shadow_.words();
  ShadowEntry write[2], other[2];
  for (int i = 0; i < 2; ++i) {
    if (!common(all.write[i], write[i]) || !common(all.other[i], other[i])) return false;
    // What conflicts is reported word by word.
    if (write[i] != 0 && !is_ordered(write[i])) return false;
    if (c.write && other[i] != 0 && !is_ordered(other[i])) return false;
  }
  const auto clear = [&](ShadowEntry* list, ShadowEntry entry) {
    if (entry != 0) std::fill_n(list + r.word, r.count, 0);
  };
  if (c.write) {
    fill(all.write[0], r, c.entry);
    clear(all.write[1], write[1]);
    clear(all.other[0], other[0]);
    clear(all.other[1], other[1]);
    return true;
  }
  const bool keep_first = other[0] != 0 && !is_ordered(other[0]);
  const bool keep_second = other[1] != 0 && !is_ordered(other[1]);
  if (!keep_first && keep_second) {
    std::copy_n(all.other[1] + r.word, r.count, all.other[0] + r.word);
  }
  if (keep_first || keep_second) {
    fill(all.other[1], r, c.entry);
  } else {
    fill(all.other[0], r, c.entry);
    clear(all.other[1], other[1]);
  }
  return true;
}

}  // namespace assay::sim
