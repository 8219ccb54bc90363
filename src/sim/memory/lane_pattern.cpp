#include "sim/memory/lane_pattern.h"

#include <algorithm>

#include "sim/memory/distinct.h"

namespace assay::sim {
namespace {

bool is_contiguous(const WarpAccess& a, std::uint64_t origin) {
  std::uint64_t difference = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    const std::uint64_t active = 0 - std::uint64_t{(a.mask >> i) & 1u};
    difference |= (a.address[i] ^ (origin + i * std::uint64_t{a.bytes})) & active;
  }
  return difference == 0;
}

bool is_run(std::uint32_t mask) {
  const std::uint32_t shifted = mask >> std::countr_zero(mask);
  return (shifted & (shifted + 1)) == 0;
}

}  // namespace

LanePattern find_other_pattern(const WarpAccess& a) {
  LanePattern p;
  p.first = static_cast<std::uint32_t>(std::countr_zero(a.mask));
  p.lanes = static_cast<std::uint32_t>(std::popcount(a.mask));
  const bool full = a.mask == ~std::uint32_t{0};
  const std::uint64_t low = a.address[p.first], align = a.bytes - 1;
  if (p.lanes == 1) {
    p.low = p.high = low;
    p.aligned = (low & align) == 0;
    p.contiguous = p.uniform = p.distinct = p.ascending = true;
    return p;
  }
  if (!full && is_run(a.mask) && is_contiguous(a, low - p.first * std::uint64_t{a.bytes})) {
    p.low = low;
    p.high = low + (p.lanes - 1) * std::uint64_t{a.bytes};
    p.contiguous = true;
    p.uniform = p.lanes == 1;
    p.ascending = p.distinct = true;
    p.aligned = (low & align) == 0;
    return p;
  }

  const LaneAddresses all(a);
  std::uint64_t lowest = low, highest = low, bits = low;
  for (unsigned i = 0; i < kLanes; ++i) {
    lowest = std::min(lowest, all.v[i]);
    highest = std::max(highest, all.v[i]);
    bits |= all.v[i];
  }
  p.low = lowest;
  p.high = highest;
  p.aligned = (bits & align) == 0;
  p.uniform = lowest == highest;
  if (full) {
    std::uint32_t descents = 0;
    for (unsigned i = 1; i < kLanes; ++i) descents += all.v[i] <= all.v[i - 1] ? 1u : 0u;
    p.ascending = descents == 0;
  }
  p.distinct = p.ascending || p.lanes == 1;
  if (a.kind == AccessKind::store && !p.distinct && !p.uniform) {
    std::uint64_t offsets[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) offsets[i] = all.v[i] - lowest;
    p.distinct = count_distinct(offsets, 0, highest - lowest) == p.lanes;
  }
  return p;
}

}  // namespace assay::sim
