// Accesses of consecutive words, which are most: what they have in common is found with vectors.
#include <algorithm>

#include "sim/memory/any_bits.h"
#include "sim/memory/global_races.h"

namespace assay::sim {
namespace {

using namespace shadow;

}  // namespace

void BlockRaces::fill(ShadowEntry* list, const Range& r, ShadowEntry entry) {
  const ShadowEntry e = entry | kAllBytes | r.thread;
  for (std::size_t i = 0; i < r.count; ++i) list[r.word + i] = e + ((i << r.up) >> r.down);
}

// Words that are all alike, while blocks are unordered; false: look at each.
bool BlockRaces::collect_range(const Current& c, const Range& r) {
  const RaceShadow::Chunk& chunk = shadow_.chunk(r.word);
  const auto& all = shadow_.words();
  const auto all_past = [&](const ShadowEntry* list) {
    const ShadowEntry past = grid_.past_;
    const auto not_past = [=](ShadowEntry e) { return not_below(e, past); };
    return any_bits(list + r.word, r.count, not_past) == 0;
  };
  if (c.write) {
    if (chunk.touched == grid_.first_) {
      // Only this segment may have read them.
      const ShadowEntry past = grid_.past_, own = at_segment(segment_);
      const auto foreign = [=](ShadowEntry e) {
        return not_below(e, past) & ((e ^ own) >> kSegmentShift == 0 ? 0 : ~ShadowEntry{0});
      };
      if (any_bits(all.other[0] + r.word, r.count, foreign) != 0) return false;
      if (!all_past(all.other[1])) return false;
    }
    if (!all_past(all.write[0])) return false;
    fill(all.write[0], r, c.entry);
    return true;
  }
  if (chunk.written == grid_.first_) return false;
  if (all_past(all.other[0])) {
    fill(all.other[0], r, c.entry);
    return true;
  }
  // Read by one lower block before.
  const auto not_lower = [=](ShadowEntry e) { return c.not_lower(e); };
  if (any_bits(all.other[0] + r.word, r.count, not_lower) != 0) return false;
  if (!all_past(all.other[1])) return false;
  fill(all.other[1], r, c.entry);
  return true;
}

// Words in one chunk with the same history, in a grid with order; false: look at each.
bool BlockRaces::follow_range(const Current& c, const Range& r) {
  // One entry that stands for all of a list, 0 for none; false if there is no such.
  const auto common = [&](const ShadowEntry* list, ShadowEntry& entry) {
    const ShadowEntry first = list[r.word], past = grid_.past_;
    entry = first < past ? 0 : first;
    const auto not_past = [=](ShadowEntry e) { return not_below(e, past); };
    const auto unlike = [=](ShadowEntry e) {
      return ((e ^ first) & kSegmentMask) | (~e & kAllBytes);
    };
    const ShadowEntry* const begin = list + r.word;
    return (entry == 0 ? any_bits(begin, r.count, not_past) : any_bits(begin, r.count, unlike)) ==
           0;
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
