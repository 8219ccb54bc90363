// Floating-point formats as bit patterns, and rounding from one to another.
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

using E5m2 = Format<std::uint32_t, 5, 2>;
// No infinity: the highest exponent holds numbers, and the code above them all is NaN. `infinity`
// is that code; the caller decides what it means.
struct E4m3 : Format<std::uint32_t, 4, 3> {
  static constexpr Word infinity = 0x7f, max_finite = 0x7e;
};

inline constexpr std::uint32_t kNan32 = 0x7fffffff;
// NVIDIA's default double NaN (CUDART_NAN); PTX leaves the choice open.
inline constexpr std::uint64_t kNan64 = 0xfff8000000000000;
inline constexpr std::uint32_t kNan16 = 0x7fff;  // for f16 and bf16

// yes or no without a branch: compilers would turn some conditions into branches and then not
// vectorise.
template <class Word>
[[gnu::always_inline]] constexpr Word select(bool condition, Word yes, Word no) {
  const Word mask = Word{0} - static_cast<Word>(condition);
  return (yes & mask) | (no & ~mask);
}
[[gnu::always_inline]] inline float select(bool condition, float yes, float no) {
  return std::bit_cast<float>(
      select(condition, std::bit_cast<std::uint32_t>(yes), std::bit_cast<std::uint32_t>(no)));
}
[[gnu::always_inline]] inline double select(bool condition, double yes, double no) {
  return std::bit_cast<double>(
      select(condition, std::bit_cast<std::uint64_t>(yes), std::bit_cast<std::uint64_t>(no)));
}

// What to add below the last kept bit so that dropping `drop` >= 1 bits rounds; `odd` is that bit.
template <Rounding R, class Word>
[[gnu::always_inline]] constexpr Word rounding_increment(bool negative, Word odd, Word drop) {
  const Word half = Word{1} << (drop - 1);
  const Word rest = half + (half - 1);
  switch (R) {
    case Rounding::nearest_even: return half - 1 + odd;
    case Rounding::nearest_away: return half;
    case Rounding::toward_zero: return 0;
    case Rounding::down: return select<Word>(negative, rest, 0);
    case Rounding::up: return select<Word>(negative, 0, rest);
  }
  return 0;
}

// Whether a finite value too large for the format becomes infinity instead of the largest finite
// value.
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
    // A carry out of the fraction raises the exponent, possibly to infinity.
    const Word odd = (magnitude >> kDrop) & 1;
    out = (magnitude + rounding_increment<R, Word>(negative, odd, kDrop)) >> kDrop;
  } else {
    // The smallest normal exponent of To, as From counts.
    constexpr Word kMinExponent = From::bias - To::bias + 1;
    constexpr Word kMaxDrop = sizeof(Word) * 8 - 2;
    const Word exponent = magnitude >> From::fraction_bits;
    const Word fraction = magnitude & (From::min_normal - 1);
    const Word significand = fraction | select<Word>(exponent == 0, 0, From::min_normal);
    const bool below = exponent < kMinExponent;
    const Word subnormal = select<Word>(below, kMinExponent - exponent, 0);
    const Word wanted = kDrop + subnormal;
    const Word drop = select(wanted < kMaxDrop, wanted, kMaxDrop);
    const Word base = select<Word>(below, 0, (exponent - kMinExponent) << To::fraction_bits);
    const Word odd = (significand >> drop) & 1;
    // The significand's leading bit adds the one that `base` lacks in its exponent.
    out = base + ((significand + rounding_increment<R, Word>(negative, odd, drop)) >> drop);
    const Word limit = select<Word>(overflows_to_infinity<R>(negative), kInfinity, To::max_finite);
    out = select(out >= kInfinity, limit, out);
  }
  out = select(magnitude == From::infinity, kInfinity, out);
  out |= select<Word>(negative, To::sign, 0);
  return select<Word>(magnitude > From::infinity, To::nan, out);
}

// narrow() from f32 to f16 to nearest even, faster: the host rounds subnormal results.
[[gnu::always_inline]] inline std::uint32_t nearest_f16(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & (F32::sign - 1);
  // Adding 1/2 leaves the value in units of 2^-24, rounded, in the low bits.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  const std::uint32_t odd = (magnitude >> 13) & 1;
  const std::uint32_t normal = (magnitude - ((127 - 15) << 23) + 0xfff + odd) >> 13;
  std::uint32_t out = select(magnitude < 0x38800000, subnormal, normal);
  // From half a unit above the largest finite value, 65504, upwards.
  out = select(magnitude >= 0x477ff000, F16::infinity, out) | (bits >> 16 & F16::sign);
  return select(magnitude > F32::infinity, F16::nan, out);
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
  // `rest` plus the increment carries exactly when the kept bits must grow. Neither exceeds kDrop
  // bits, so the sum does not wrap.
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
  std::uint32_t bits = select(magnitude < F16::min_normal, subnormal, normal);
  bits = select(magnitude == F16::infinity, F32::infinity, bits) | sign;
  bits = select(magnitude > F16::infinity, kNan32, bits);
  return std::bit_cast<float>(bits);
}

// Exact. A NaN keeps its payload, as in the shift that programs use for this.
[[gnu::always_inline]] inline float widen(Bfloat b) { return std::bit_cast<float>(b.bits << 16); }

template <class T, Rounding R = Rounding::nearest_even>
[[gnu::always_inline]] inline T to_half(float x) {
  if constexpr (std::is_same_v<T, Half> && R == Rounding::nearest_even) {
    return {nearest_f16(std::bit_cast<std::uint32_t>(x))};
  }
  return {narrow<F32, typename T::Bits, R>(std::bit_cast<std::uint32_t>(x))};
}

template <class T, Rounding R = Rounding::nearest_even>
[[gnu::always_inline]] inline T to_half(double x) {
  return {static_cast<std::uint32_t>(
      narrow<F64, typename T::Bits, R>(std::bit_cast<std::uint64_t>(x)))};
}

// The tf32 value in its register form: an f32 whose low 13 bits are zero, or the canonical NaN.
template <Rounding R>
[[gnu::always_inline]] inline std::uint32_t to_tf32(float x) {
  const std::uint32_t bits = narrow<F32, Tf32, R>(std::bit_cast<std::uint32_t>(x));
  return select((bits & (Tf32::sign - 1)) > Tf32::infinity, kNan32, bits << 13);
}

// .satfinite: replaces infinity by the largest finite value.
template <class F>
[[gnu::always_inline]] constexpr std::uint32_t saturate_finite(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & (F::sign - 1);
  return select<std::uint32_t>(magnitude == F::infinity, (bits & F::sign) | F::max_finite, bits);
}

// Rounds to E4m3 or E5m2, to nearest even; values that are too large become the largest. NaN is
// 0x7f.
template <class F8>
[[gnu::always_inline]] inline std::uint32_t to_fp8(float x) {
  const std::uint32_t bits =
      narrow<F32, F8, Rounding::nearest_even>(std::bit_cast<std::uint32_t>(x));
  return select<std::uint32_t>(x != x, 0x7f, saturate_finite<F8>(bits));
}

// Exact. E4m3 has one exponent bit less than f16, and its bias is 7, not 15.
template <class F8>
[[gnu::always_inline]] inline float widen_fp8(std::uint32_t x) {
  if constexpr (std::is_same_v<F8, E5m2>) return widen(Half{(x & 0xff) << 8});
  const float value = widen(Half{(x & 0x80) << 8 | (x & 0x7f) << 7}) * 256;
  return select((x & 0x7f) == E4m3::infinity, std::bit_cast<float>(kNan32), value);
}

// Replaces NaN by the canonical one.
[[gnu::always_inline]] inline float canonical(float x) {
  return select(x != x, std::bit_cast<float>(kNan32), x);
}
[[gnu::always_inline]] inline double canonical(double x) {
  return select(x != x, std::bit_cast<double>(kNan64), x);
}

// .ftz: a subnormal becomes a zero of the same sign.
[[gnu::always_inline]] inline float flush(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const bool keep = (bits & (F32::sign - 1)) >= F32::min_normal;
  return std::bit_cast<float>(bits & (F32::sign | (0 - static_cast<std::uint32_t>(keep))));
}
template <class T>
[[gnu::always_inline]] inline T flush_half(T h) {
  const std::uint32_t sign = h.bits & 0x8000;
  return {select<std::uint32_t>((h.bits ^ sign) < T::Bits::min_normal, sign, h.bits)};
}

// .sat: to [0, 1], NaN and -0 to +0.
template <class Real>
[[gnu::always_inline]] inline Real saturate(Real x) {
  const Real low = select(x > 0, x, Real{0});
  return select(low < 1, low, Real{1});
}

// .relu: negative values and -0 to +0; NaN stays.
template <class Real>
[[gnu::always_inline]] inline Real relu(Real x) {
  return select(!(x <= 0), x, Real{0});
}

}  // namespace assay::sim
