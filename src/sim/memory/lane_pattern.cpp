#include "sim/memory/lane_pattern.h"

#include <algorithm>

namespace assay::sim {
namespace {

// All ones where the lane is active. `full` is known when the code is compiled, so that the mask
// costs nothing then.
template <bool full>
std::uint64_t select(std::uint32_t mask, unsigned lane) {
  return full ? ~std::uint64_t{0} : 0 - std::uint64_t{(mask >> lane) & 1u};
}

template <bool full>
bool is_linear(const WarpAccess& a, std::uint64_t origin, std::uint64_t stride) {
  std::uint64_t difference = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    difference |= (a.address[i] ^ (origin + i * stride)) & select<full>(a.mask, i);
  }
  return difference == 0;
}

bool is_run(std::uint32_t mask) {
  const std::uint32_t shifted = mask >> std::countr_zero(mask);
  return (shifted & (shifted + 1)) == 0;
}

}  // namespace

LanePattern find_pattern(const WarpAccess& a) {
  LanePattern p;
  p.first = static_cast<std::uint32_t>(std::countr_zero(a.mask));
  p.lanes = static_cast<std::uint32_t>(std::popcount(a.mask));
  const bool full = a.mask == ~std::uint32_t{0};
  const std::uint64_t low = a.address[p.first], align = a.bytes - 1;

  if (full) {
    const std::uint64_t stride = a.address[1] - low;
    const bool forward = static_cast<std::int64_t>(stride) >= 0;
    if (forward && is_linear<true>(a, low, stride)) {
      p.stride = stride;
      p.low = low;
      p.high = low + (kLanes - 1) * stride;
      p.contiguous = stride == a.bytes;
      p.uniform = stride == 0;
      p.ascending = !p.uniform;
      p.aligned = ((low | stride) & align) == 0;
      return p;
    }
  } else {
    const std::uint64_t origin = low - p.first * std::uint64_t{a.bytes};
    if (is_run(a.mask) && is_linear<false>(a, origin, a.bytes)) {
      p.low = low;
      p.high = low + (p.lanes - 1) * std::uint64_t{a.bytes};
      p.contiguous = true;
      p.uniform = p.lanes == 1;
      p.ascending = !p.uniform;
      p.aligned = (low & align) == 0;
      return p;
    }
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
  return p;
}

}  // namespace assay::sim
