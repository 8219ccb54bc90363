#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/memory/access.h"

namespace assay::sim {

// The bits set in any f(value). It turns tests of many shadow entries into vector loops without
// comparisons; typically there is one word per lane.
template <class F>
inline std::uint64_t any_bits(const std::uint64_t* values, std::size_t count, F&& f) {
  std::uint64_t bits = 0;
  if (count == kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) bits |= f(values[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) bits |= f(values[i]);
  }
  return bits;
}

// 0 if a < b, otherwise the highest bit; T: a word or a vector of them. REQUIRES: both below 2^63,
// b > 0.
template <class T>
constexpr T not_below(const T& a, std::uint64_t b) {
  return (b - 1 - a) & (std::uint64_t{1} << 63);
}

// The highest bit if v is not 0. REQUIRES: v below 2^63.
template <class T>
constexpr T is_nonzero(const T& v) {
  return (0 - v) & (std::uint64_t{1} << 63);
}

}  // namespace assay::sim
