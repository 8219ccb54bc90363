#include "sim/memory/race_shadow.h"

#include "sim/memory/checker.h"

namespace assay::sim {

static_assert(kLastPlace == shadow::kMaxPc);
static_assert(2 * kMaxCheckedBlocks <= shadow::kMaxSegment + 1);

RaceShadow::RaceShadow(std::uint64_t span)
    : values_(span, "the values that the race check compares", true),
      chunks_(span / (kChunkWords * kWordBytes) * sizeof(Chunk), "the race check's chunks"),
      owners_((std::uint64_t{shadow::kMaxSegment} + 1) * sizeof(Owner),
              "the race check's segments") {
  for (auto& m : maps_) {
    m = LazyMap(span / kWordBytes * sizeof(ShadowEntry), "the race check of global memory", true);
  }
  words_ = {{maps_[0].as<ShadowEntry>(), maps_[1].as<ShadowEntry>()},
            {maps_[2].as<ShadowEntry>(), maps_[3].as<ShadowEntry>()}};
}

std::uint32_t RaceShadow::open(std::uint64_t blocks) {
  // Reserves half of the numbers for fences.
  if (next_ > kMaxCheckedBlocks || next_ + blocks > kMaxCheckedBlocks) {
    for (auto& m : maps_) m.clear(0, m.bytes());
    chunks_.clear(0, chunks_.bytes());
    next_ = 1;
  }
  first_ = next_;
  blocks_ = static_cast<std::uint32_t>(blocks);
  next_ = first_ + blocks_;
  return first_;
}

std::uint32_t RaceShadow::next_segment(std::uint32_t current, std::uint32_t block,
                                       std::uint32_t clock) {
  std::uint32_t segment = next_.load(std::memory_order_relaxed);
  do {
    if (segment > shadow::kMaxSegment) return current;
  } while (!next_.compare_exchange_weak(segment, segment + 1, std::memory_order_relaxed));
  owners_.as<Owner>()[segment] = {block, clock};
  return segment;
}

void RaceShadow::forget(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t scale = sizeof(ShadowEntry) / kWordBytes;
  for (auto& m : maps_) m.clear(scale * (address - kGlobalRange.begin), scale * bytes);
  values_.clear(address - kGlobalRange.begin, bytes);
}

}  // namespace assay::sim
