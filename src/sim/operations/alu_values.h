// How arithmetic operands are stored in the lanes of a register.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "sim/math/formats.h"

namespace assay::sim {

// Parameters that are not registers.
struct Immediate {  // a literal operand
  std::uint64_t value;
};
struct Fixed {  // Selection::imm, set when the handler is selected
  std::uint64_t value;
};

// Two 16-bit values in a 32-bit register.
template <class T>
struct Pair {
  std::uint32_t bits;
};

// The type in which a value of type T is stored in a lane.
template <class T>
using LaneWord = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
struct IsPair : std::false_type {};
template <class T>
struct IsPair<Pair<T>> : std::true_type {};

// Truncates 8- and 16-bit values to their width, whatever the upper bits hold.
template <class T>
[[gnu::always_inline]] inline T from_lane(LaneWord<T> word) {
  if constexpr (is_half<T>) {
    return T{word & 0xffff};
  } else if constexpr (IsPair<T>::value) {
    return T{word};
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<T>(word);
  } else {
    return static_cast<T>(word);
  }
}

template <class T>
[[gnu::always_inline]] inline LaneWord<T> to_lane(T value) {
  if constexpr (is_half<T> || IsPair<T>::value) {
    return value.bits;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<LaneWord<T>>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

template <class T>
[[gnu::always_inline]] inline T low_half(Pair<T> p) {
  if constexpr (is_half<T>) {
    return T{p.bits & 0xffff};
  } else {
    return static_cast<T>(p.bits);
  }
}
template <class T>
[[gnu::always_inline]] inline T high_half(Pair<T> p) {
  if constexpr (is_half<T>) {
    return T{p.bits >> 16};
  } else {
    return static_cast<T>(p.bits >> 16);
  }
}
template <class T>
[[gnu::always_inline]] inline Pair<T> pair_of(T low, T high) {
  return {to_lane<T>(low) | to_lane<T>(high) << 16};
}

}  // namespace assay::sim
