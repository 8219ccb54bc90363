// Independent arithmetic, slow and plain, to compare the simulator's with.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "sim/math/formats.h"

namespace assay::sim::reference {

#if defined(__SIZEOF_FLOAT128__)
using Quad = __float128;
#else
using Quad = long double;
#endif
static_assert(sizeof(Quad) == 16, "113 bits of precision");

inline constexpr Rounding kRoundings[] = {Rounding::nearest_even, Rounding::toward_zero,
                                          Rounding::down, Rounding::up};

inline int host_mode(Rounding r) {
  switch (r) {
    case Rounding::toward_zero: return FE_TOWARDZERO;
    case Rounding::down: return FE_DOWNWARD;
    case Rounding::up: return FE_UPWARD;
    default: return FE_TONEAREST;
  }
}

// Keeps the compiler from computing with x before the rounding mode is set.
template <class T>
T hidden(T x) {
  volatile T v = x;
  return v;
}

// op(a...) in the host's rounding mode.
template <class Op, class... A>
[[gnu::noinline]] auto in_mode(Rounding rounding, Op op, A... a) {
  std::fesetround(host_mode(rounding));
  const auto result = hidden(op(hidden(a)...));
  std::fesetround(FE_TONEAREST);
  return result;
}

// The parameters of a floating-point format.
struct Format {
  int precision;     // bits of significand, the leading one included
  int min_exponent;  // of the smallest normal number
  int max_exponent;  // of the largest number
  int bits;          // in all
};
inline constexpr Format kF16{11, -14, 15, 16}, kBf16{8, -126, 127, 16}, kTf32{11, -126, 127, 19},
    kF32{24, -126, 127, 32}, kF64{53, -1022, 1023, 64};

inline double value_of(Format f, std::uint64_t bits) {
  const int fraction_bits = f.precision - 1;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << fraction_bits) - 1);
  const auto exponent =
      static_cast<int>(bits >> fraction_bits & ((1u << (f.bits - f.precision)) - 1));
  const bool negative = (bits >> (f.bits - 1) & 1) != 0;
  double magnitude;
  if (exponent == f.max_exponent + 1 - f.min_exponent + 1) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<double>(fraction), f.min_exponent - fraction_bits);
  } else {
    magnitude = std::ldexp(static_cast<double>(fraction + (std::uint64_t{1} << fraction_bits)),
                           exponent - 1 + f.min_exponent - fraction_bits);
  }
  return negative ? -magnitude : magnitude;
}

// x times 2^exponent, exactly.
inline Quad scale(Quad x, int exponent) {
  for (; exponent >= 512; exponent -= 512) x *= 0x1p512;
  for (; exponent <= -512; exponent += 512) x *= 0x1p-512;
  return x * std::ldexp(1.0, exponent);
}

// The exponent e of a positive value: 2^e <= x < 2^(e + 1).
inline int exponent_of(Quad x) {
  int exponent = 0;
  for (int step = 512; step > 0; step /= 2) {
    while (x >= std::ldexp(1.0, step)) x = scale(x, -step), exponent += step;
    while (scale(x, step) < 2) x = scale(x, step), exponent -= step;
  }
  return exponent;
}

// a + b rounded to odd, so that rounding it to a narrower format gives the same as rounding the
// exact sum.
inline Quad add(Quad a, Quad b) {
  const Quad sum = a + b, back = sum - a;
  const Quad lost = (a - (sum - back)) + (b - back);
  auto bits = std::bit_cast<unsigned __int128>(sum);
  if (lost != 0 && bits % 2 == 0) (lost < 0) == (sum < 0) ? ++bits : --bits;
  return std::bit_cast<Quad>(bits);
}

// Rounds x, which is finite and exact, to the format and returns its bits.
inline std::uint64_t round_to(Format f, Quad x, bool negative_zero, Rounding rounding) {
  const std::uint64_t sign = std::uint64_t{1} << (f.bits - 1);
  if (x == 0) return negative_zero ? sign : 0;
  const bool negative = x < 0;
  const Quad magnitude = negative ? -x : x;
  const int exponent = exponent_of(magnitude);
  // The magnitude in units of the last place.
  const int unit = (exponent > f.min_exponent ? exponent : f.min_exponent) - (f.precision - 1);
  const Quad units = scale(magnitude, -unit);
  auto whole = static_cast<std::uint64_t>(units);
  const Quad rest = units - static_cast<Quad>(whole);
  bool up = false;
  switch (rounding) {
    case Rounding::nearest_even: up = rest > 0.5 || (rest == 0.5 && whole % 2 == 1); break;
    case Rounding::nearest_away: up = rest >= 0.5; break;
    case Rounding::toward_zero: break;
    case Rounding::down: up = negative && rest > 0; break;
    case Rounding::up: up = !negative && rest > 0; break;
  }
  whole += up ? 1 : 0;
  // Encode. Subnormals carry into the first normal number without special treatment.
  const int fraction_bits = f.precision - 1;
  const auto biased = static_cast<std::uint64_t>(unit + fraction_bits - f.min_exponent);
  std::uint64_t bits = (biased << fraction_bits) + whole;
  const std::uint64_t infinity = static_cast<std::uint64_t>(f.max_exponent - f.min_exponent + 2)
                                 << fraction_bits;
  if (bits >= infinity) {
    const bool to_infinity =
        rounding == Rounding::nearest_even || rounding == Rounding::nearest_away ||
        (rounding == Rounding::down && negative) || (rounding == Rounding::up && !negative);
    bits = to_infinity ? infinity : infinity - 1;
  }
  return bits | (negative ? sign : 0);
}

inline std::uint64_t infinity_of(Format f) {
  return static_cast<std::uint64_t>(f.max_exponent - f.min_exponent + 2) << (f.precision - 1);
}

// The same for any double; NaN gives all ones except the sign.
inline std::uint64_t round_double(Format f, double x, Rounding rounding) {
  if (std::isnan(x)) return (std::uint64_t{1} << (f.bits - 1)) - 1;
  const std::uint64_t sign = std::signbit(x) ? std::uint64_t{1} << (f.bits - 1) : 0;
  if (std::isinf(x)) return infinity_of(f) | sign;
  return round_to(f, x, std::signbit(x), rounding);
}

// Operands: the values where errors are likely, and random ones.
class Operands {
 public:
  explicit Operands(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t bits() { return engine_(); }
  bool coin() { return (engine_() & 1) != 0; }

  template <class T>
  T next() {
    if constexpr (std::is_same_v<T, bool>) {
      return coin();
    } else if constexpr (std::is_same_v<T, float>) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(real_bits(kF32)));
    } else if constexpr (std::is_same_v<T, double>) {
      return std::bit_cast<double>(real_bits(kF64));
    } else if constexpr (std::is_same_v<T, Half>) {
      return {static_cast<std::uint32_t>(real_bits(kF16))};
    } else if constexpr (std::is_same_v<T, Bfloat>) {
      return {static_cast<std::uint32_t>(real_bits(kBf16))};
    } else {
      return integer<T>();
    }
  }

 private:
  template <class T>
  T integer() {
    constexpr int kBits = sizeof(T) * 8;
    switch (engine_() % 4) {
      case 0: {  // near zero and the extremes
        const T edges[] = {0, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
        const auto offset = static_cast<std::int64_t>(engine_() % 5) - 2;
        return static_cast<T>(static_cast<std::uint64_t>(edges[engine_() % 3]) +
                              static_cast<std::uint64_t>(offset));
      }
      case 1: {  // near a power of two
        const std::uint64_t power = std::uint64_t{1} << engine_() % kBits;
        return static_cast<T>(power + engine_() % 3 - 1);
      }
      case 2: return static_cast<T>(engine_() >> engine_() % 64);
      default: return static_cast<T>(engine_());
    }
  }

  std::uint64_t real_bits(Format f) {
    const int fraction_bits = f.precision - 1;
    const std::uint64_t all = f.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << f.bits) - 1;
    const std::uint64_t sign = coin() ? std::uint64_t{1} << (f.bits - 1) : 0;
    const std::uint64_t infinity = infinity_of(f), least = std::uint64_t{1} << fraction_bits;
    const auto bias = static_cast<std::uint64_t>(1 - f.min_exponent);
    switch (engine_() % 8) {
      case 0: {  // zero, subnormal, normal, infinite and NaN, at the boundaries
        const std::uint64_t edges[] = {0,
                                       1,
                                       least - 1,
                                       least,
                                       least + 1,
                                       infinity - 1,
                                       infinity,
                                       infinity + 1,
                                       infinity + least / 2,
                                       2,
                                       3};
        return edges[engine_() % 11] | sign;
      }
      case 1:  // 1, 1/2, 2, 3, 1.5, ...
        return ((bias + engine_() % 4 - 2) << fraction_bits | (engine_() % 4)
                                                                  << (fraction_bits - 2)) |
               sign;
      case 2: return (engine_() & (least - 1)) | sign;  // subnormal
      case 3: {                                         // few significant bits: ties
        const std::uint64_t exponent = (bias + engine_() % 32 - 16) % (infinity >> fraction_bits);
        return (exponent << fraction_bits |
                ((engine_() % 64) << (fraction_bits - 6 > 0 ? fraction_bits - 6 : 0) &
                 (least - 1))) |
               sign;
      }
      case 4:
      case 5:  // moderate, so that sums cancel and overlap
        return ((bias + engine_() % 32 - 16) % (infinity >> fraction_bits)) << fraction_bits |
               (engine_() & (least - 1)) | sign;
      default: return engine_() & all;
    }
  }

  std::mt19937_64 engine_;
};

}  // namespace assay::sim::reference
