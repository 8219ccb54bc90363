// Accesses of consecutive words, which are the most common: vector operations find what they share.
#include <algorithm>
#include <cstring>

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

// Plain writes, with their values.
void BlockRaces::fill_written(const Range& r, ShadowEntry entry) {
  fill(shadow_.words().write[0], r, entry);
  if (r.values == nullptr) return;
  std::memcpy(shadow_.values() + r.word, r.values, r.count * RaceShadow::kWordBytes);
}

bool BlockRaces::all_mine(const Current& c, const Range& r) const {
  const auto not_mine = [=](ShadowEntry e) { return c.not_mine(e); };
  return any_bits(shadow_.words().write[0] + r.word, r.count, not_mine) == 0;
}

// This segment wrote the words before: conflicts are known, only the values are new.
void BlockRaces::write_again(const Current& c, const Range& r) {
  std::uint32_t* const held = shadow_.values() + r.word;
  ShadowEntry* const low = shadow_.words().write[0] + r.word;
  for (std::size_t i = 0; i < r.count; ++i) {
    std::uint32_t value = 0;
    if (r.values != nullptr) std::memcpy(&value, r.values + i * sizeof value, sizeof value);
    // Once some blocks are ordered, only the last value counts.
    if (r.values == nullptr || (!c.ordered && held[i] != value)) low[i] |= kDiffers;
    held[i] = value;
  }
}

// Handles words that are all alike while blocks are unordered. False: each must be examined.
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
    fill_written(r, c.entry);
    return true;
  }
  if (chunk.written == grid_.first_) return false;
  if (all_past(all.other[0])) {
    fill(all.other[0], r, c.entry);
    return true;
  }
  // Read before by one lower block.
  const auto not_lower = [=](ShadowEntry e) { return c.not_lower(e); };
  if (any_bits(all.other[0] + r.word, r.count, not_lower) != 0) return false;
  if (!all_past(all.other[1])) return false;
  fill(all.other[1], r, c.entry);
  return true;
}

// Handles words in one chunk with the same history, in a grid with order. False: each must be
// examined.
bool BlockRaces::follow_range(const Current& c, const Range& r) {
  // One entry that represents a whole list, or 0 for an empty one; false if there is none.
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
    // Conflicts are reported word by word.
    if (write[i] != 0 && !is_ordered(write[i], false)) return false;
    if (c.write && other[i] != 0 && !is_ordered(other[i], kind_of(other[i]) == AccessKind::load))
      return false;
  }
  const auto clear = [&](ShadowEntry* list, ShadowEntry entry) {
    if (entry != 0) std::fill_n(list + r.word, r.count, 0);
  };
  if (c.write) {
    fill_written(r, c.entry);
    clear(all.write[1], write[1]);
    clear(all.other[0], other[0]);
    clear(all.other[1], other[1]);
    return true;
  }
  const bool keep_first =
      other[0] != 0 && !is_ordered(other[0], kind_of(other[0]) == AccessKind::load);
  const bool keep_second =
      other[1] != 0 && !is_ordered(other[1], kind_of(other[1]) == AccessKind::load);
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
