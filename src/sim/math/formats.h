// Floating-point formats as bit patterns, and the rounding of one into another.
//
// Everything is branch-free integer arithmetic, so that a loop over lanes vectorises and every host
// gives the same bits. NaN results are NVIDIA's canonical NaN (PTX ISA, "Floating Point
// Instructions"): a positive NaN with every fraction bit set.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace assay::sim {

enum class Rounding : std::uint8_t {
  nearest_even,  // .rn
  toward_zero,   // .rz
  down,          // .rm
  up,            // .rp
  nearest_away,  // .rna, ties away from zero: to tf32 only
};

// A format of 1 + exponent_bits + fraction_bits bits in the low bits of a Word.
template <class WordType, int kExponentBits, int kFractionBits>
struct Format {
  using Word = WordType;
  static constexpr int exponent_bits = kExponentBits, fraction_bits = kFractionBits;
  static constexpr int bias = (1 << (kExponentBits - 1)) - 1;
  static constexpr Word sign = Word{1} << (kExponentBits + kFractionBits);
  static constexpr Word infinity = ((Word{1} << kExponentBits) - 1) << kFractionBits;
  static constexpr Word max_finite = infinity - 1;
  static constexpr Word min_normal = Word{1} << kFractionBits;
  static constexpr Word nan = sign - 1;
};

using F16 = Format<std::uint32_t, 5, 10>;
using Bf16 = Format<std::uint32_t, 8, 7>;
using Tf32 = Format<std::uint32_t, 8, 10>;  // a register holds it shifted left by 13
using F32 = Format<std::uint32_t, 8, 23>;
using F64 = Format<std::uint64_t, 11, 52>;

inline constexpr std::uint32_t kNan32 = 0x7fffffff;
// NVIDIA's default double NaN (CUDART_NAN): PTX leaves the choice open.
inline constexpr std::uint64_t kNan64 = 0xfff8000000000000;
inline constexpr std::uint32_t kNan16 = 0x7fff;  // of f16 and bf16

// What to add below the last kept bit so that dropping `drop` >= 1 bits rounds; `odd` is that bit.
template <Rounding R, class Word>
[[gnu::always_inline]] constexpr Word rounding_increment(bool negative, Word odd, Word drop) {
  const Word half = Word{1} << (drop - 1);
  const Word rest = half + (half - 1);
  switch (R) {
    case Rounding::nearest_even: return half - 1 + odd;
    case Rounding::nearest_away: return half;
    case Rounding::toward_zero: return 0;
    case Rounding::down: return negative ? rest : 0;
    case Rounding::up: return negative ? 0 : rest;
  }
  return 0;
}

// Whether a finite value too large for the format becomes infinite, not the largest finite one.
template <Rounding R>
[[gnu::always_inline]] constexpr bool overflows_to_infinity(bool negative) {
  switch (R) {
    case Rounding::toward_zero: return false;
    case Rounding::down: return negative;
    case Rounding::up: return !negative;
    default: return true;
  }
}

// Rounds a value of format From, once, to the narrower format To; subnormal results are kept.
template <class From, class To, Rounding R>
[[gnu::always_inline]] constexpr typename From::Word narrow(typename From::Word bits) {
  using Word = typename From::Word;
  constexpr Word kDrop = From::fraction_bits - To::fraction_bits;
  constexpr Word kInfinity = To::infinity;
  const Word magnitude = bits & (From::sign - 1);
  const bool negative = bits != magnitude;
  Word out = 0;
  if constexpr (From::exponent_bits == To::exponent_bits) {
    // A carry out of the fraction raises the exponent, at last to infinity.
    const Word odd = (magnitude >> kDrop) & 1;
    out = (magnitude + rounding_increment<R, Word>(negative, odd, kDrop)) >> kDrop;
  } else {
    // The smallest normal exponent of To, as From counts.
    constexpr Word kMinExponent = From::bias - To::bias + 1;
    constexpr Word kMaxDrop = sizeof(Word) * 8 - 2;
    const Word exponent = magnitude >> From::fraction_bits;
    const Word fraction = magnitude & (From::min_normal - 1);
    const Word significand = fraction | (exponent == 0 ? 0 : From::min_normal);
    const Word subnormal = exponent < kMinExponent ? kMinExponent - exponent : 0;
    const Word wanted = kDrop + subnormal;
    const Word drop = wanted < kMaxDrop ? wanted : kMaxDrop;
    const Word base = exponent < kMinExponent ? 0 : (exponent - kMinExponent) << To::fraction_bits;
    const Word odd = (significand >> drop) & 1;
    // The significand's leading bit adds the one that `base` lacks in its exponent.
    out = base + ((significand + rounding_increment<R, Word>(negative, odd, drop)) >> drop);
    const Word limit = overflows_to_infinity<R>(negative) ? kInfinity : Word{To::max_finite};
    out = out >= kInfinity ? limit : out;
  }
  out = magnitude == From::infinity ? kInfinity : out;
  out |= negative ? Word{To::sign} : 0;
  return magnitude > From::infinity ? Word{To::nan} : out;
}

// Rounds an integer, given as sign and magnitude, once to any format.
template <class To, Rounding R>
constexpr typename To::Word from_integer(bool negative, std::uint64_t magnitude) {
  if (magnitude == 0) return 0;
  constexpr int kDrop = 63 - To::fraction_bits;
  const int zeros = std::countl_zero(magnitude);
  const std::uint64_t significand = magnitude << zeros;  // its leading bit is bit 63
  const std::uint64_t exponent = static_cast<std::uint64_t>(63 - zeros + To::bias);
  const std::uint64_t kept = significand >> kDrop;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << kDrop) - 1);
  const std::uint64_t increment = rounding_increment<R, std::uint64_t>(negative, kept & 1, kDrop);
  // `rest` plus the increment carries exactly when the kept bits must grow; neither exceeds kDrop
  // bits, so that the sum does not wrap.
  std::uint64_t out = ((exponent - 1) << To::fraction_bits) + kept + ((rest + increment) >> kDrop);
  if (out >= To::infinity) {
    out = overflows_to_infinity<R>(negative) ? To::infinity : To::max_finite;
  }
  return static_cast<typename To::Word>(out | (negative ? To::sign : 0));
}

// f16 and bf16 values in the low half of a lane; the upper half is zero.
struct Half {
  using Bits = F16;
  std::uint32_t bits;
};
struct Bfloat {
  using Bits = Bf16;
  std::uint32_t bits;
};

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat>;

// Exact. A NaN becomes canonical.
[[gnu::always_inline]] inline float widen(Half h) {
  const std::uint32_t magnitude = h.bits & 0x7fff;
  const std::uint32_t sign = (h.bits & 0x8000) << 16;
  const std::uint32_t normal = (magnitude << 13) + ((127 - 15) << 23);
  // A subnormal is the fraction of a float of exponent -14, less that float's leading bit.
  const float above = std::bit_cast<float>((magnitude << 13) + (113u << 23));
  const auto subnormal = std::bit_cast<std::uint32_t>(above - 0x1p-14f);
  std::uint32_t bits = magnitude < F16::min_normal ? subnormal : normal;
  bits = magnitude == F16::infinity ? F32::infinity : bits;
  bits = magnitude > F16::infinity ? kNan32 : bits | sign;
  return std::bit_cast<float>(bits);
}

// Exact. A NaN keeps its payload, as in the shift by which programs do the same.
[[gnu::always_inline]] inline float widen(Bfloat b) { return std::bit_cast<float>(b.bits << 16); }

template <class T, Rounding R = Rounding::nearest_even>
[[gnu::always_inline]] inline T to_half(float x) {
  return {narrow<F32, typename T::Bits, R>(std::bit_cast<std::uint32_t>(x))};
}

template <class T, Rounding R = Rounding::nearest_even>
[[gnu::always_inline]] inline T to_half(double x) {
  return {static_cast<std::uint32_t>(
      narrow<F64, typename T::Bits, R>(std::bit_cast<std::uint64_t>(x)))};
}

// The tf32 value as a register holds it: an f32 whose low 13 bits are zero, or the canonical NaN.
template <Rounding R>
[[gnu::always_inline]] inline std::uint32_t to_tf32(float x) {
  const std::uint32_t bits = narrow<F32, Tf32, R>(std::bit_cast<std::uint32_t>(x));
  return (bits & (Tf32::sign - 1)) > Tf32::infinity ? kNan32 : bits << 13;
}

// NaN to the canonical one.
[[gnu::always_inline]] inline float canonical(float x) {
  return x != x ? std::bit_cast<float>(kNan32) : x;
}
[[gnu::always_inline]] inline double canonical(double x) {
  return x != x ? std::bit_cast<double>(kNan64) : x;
}

// .ftz: a subnormal becomes a zero of its sign.
[[gnu::always_inline]] inline float flush(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits & F32::sign;
  return std::bit_cast<float>((bits ^ sign) < F32::min_normal ? sign : bits);
}
template <class T>
[[gnu::always_inline]] inline T flush_half(T h) {
  const std::uint32_t sign = h.bits & 0x8000;
  return {(h.bits ^ sign) < T::Bits::min_normal ? sign : h.bits};
}

// .sat: to [0, 1], NaN and -0 to +0.
template <class Real>
[[gnu::always_inline]] inline Real saturate(Real x) {
  const Real low = x > 0 ? x : 0;
  return low < 1 ? low : 1;
}

// .relu: negative values and -0 to +0; NaN stays.
template <class Real>
[[gnu::always_inline]] inline Real relu(Real x) {
  return x > 0 || x != x ? x : 0;
}

}  // namespace assay::sim
