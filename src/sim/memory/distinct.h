// Finds repeated values among 32, without sorting.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "sim/memory/access.h"

namespace assay::sim {

// repeated[i]: not 0 if a later lane has the same value as lane i. Each distance between lanes
// takes one vector comparison, which is fastest with 16-bit values. REQUIRES: no value is T's
// maximum.
template <class T>
inline void find_repeated(const T (&values)[kLanes], T (&repeated)[kLanes]) {
  T padded[2 * kLanes];
  std::copy(values, values + kLanes, padded);
  std::fill(padded + kLanes, padded + 2 * kLanes, std::numeric_limits<T>::max());
  std::fill(repeated, repeated + kLanes, T{0});
  for (unsigned d = 1; d < kLanes; ++d) {
    for (unsigned i = 0; i < kLanes; ++i) {
      repeated[i] |= values[i] == padded[i + d] ? std::numeric_limits<T>::max() : T{0};
    }
  }
}

template <class T>
inline std::uint32_t count_distinct(const T (&values)[kLanes]) {
  T repeated[kLanes];
  find_repeated(values, repeated);
  std::uint32_t count = 0;
  for (unsigned i = 0; i < kLanes; ++i) count += repeated[i] == 0 ? 1u : 0u;
  return count;
}

// Counts distinct values of offsets >> shift; `highest` is the largest offset.
inline std::uint32_t count_distinct(const std::uint64_t (&offsets)[kLanes], unsigned shift,
                                    std::uint64_t highest) {
  const auto as = [&]<class T>(T) {
    T values[kLanes];
    for (unsigned i = 0; i < kLanes; ++i) values[i] = static_cast<T>(offsets[i] >> shift);
    return count_distinct(values);
  };
  highest >>= shift;
  if (highest < std::numeric_limits<std::uint16_t>::max()) return as(std::uint16_t{});
  if (highest < std::numeric_limits<std::uint32_t>::max()) return as(std::uint32_t{});
  return as(std::uint64_t{});
}

}  // namespace assay::sim
