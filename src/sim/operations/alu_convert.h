// Shared by the files of cvt.
#pragma once

#include "sim/math/convert.h"
#include "sim/operations/alu_lanes.h"
#include "sim/operations/alu_modifiers.h"

namespace assay::sim {

// Modifiers of cvt that handlers read at run time, in Instr::imm.
struct ConvertFlags {
  static constexpr std::uint64_t kFtz = 1, kSat = 2, kRelu = 4, kSatFinite = 8;
  bool ftz, sat, relu, finite;
  [[gnu::always_inline]] explicit ConvertFlags(Fixed f)
      : ftz((f.value & kFtz) != 0),
        sat((f.value & kSat) != 0),
        relu((f.value & kRelu) != 0),
        finite((f.value & kSatFinite) != 0) {}
};
// None of them: the usual case has separate handlers.
struct NoFlags {
  static constexpr bool ftz = false, sat = false, relu = false, finite = false;
  explicit NoFlags(Fixed) {}
};
// Calls f with a null pointer to the type of flags that the handler needs.
template <class F>
Selection with_flags(std::uint64_t flags, F f) {
  if (flags == 0) return f(static_cast<NoFlags*>(nullptr));
  return f(static_cast<ConvertFlags*>(nullptr));
}

// A floating-point operand as float or double, exactly.
[[gnu::always_inline]] inline float real_of(Half x) { return widen(x); }
[[gnu::always_inline]] inline float real_of(Bfloat x) { return widen(x); }
[[gnu::always_inline]] inline float real_of(float x) { return x; }
[[gnu::always_inline]] inline double real_of(double x) { return x; }

// Calls f with the rounding mode as a type constant; no handler for nearest_away.
template <Rounding R>
using RoundingConstant = std::integral_constant<Rounding, R>;
template <class F>
Selection with_rounding(Rounding rounding, F f) {
  switch (rounding) {
    case Rounding::nearest_even: return f(RoundingConstant<Rounding::nearest_even>());
    case Rounding::toward_zero: return f(RoundingConstant<Rounding::toward_zero>());
    case Rounding::down: return f(RoundingConstant<Rounding::down>());
    case Rounding::up: return f(RoundingConstant<Rounding::up>());
    default: return {};
  }
}

// Calls f with a value of the type, 8 to 64 bits, integer or floating point; no handler for others.
template <class F>
Selection with_integer(AluType type, F f) {
  switch (type) {
    case AluType::u8: return f(std::uint8_t{});
    case AluType::s8: return f(std::int8_t{});
    case AluType::u16: return f(std::uint16_t{});
    case AluType::s16: return f(std::int16_t{});
    case AluType::u32: return f(std::uint32_t{});
    case AluType::s32: return f(std::int32_t{});
    case AluType::u64: return f(std::uint64_t{});
    case AluType::s64: return f(std::int64_t{});
    default: return {};
  }
}
template <class F>
Selection with_real(AluType type, F f) {
  switch (type) {
    case AluType::f16: return f(Half{});
    case AluType::bf16: return f(Bfloat{});
    case AluType::f32: return f(float{});
    case AluType::f64: return f(double{});
    default: return {};
  }
}

// Conversions by source and destination. `flags` are those of ConvertFlags.
Selection convert_integers(AluType to, AluType from, bool sat);
Selection convert_to_integer(AluType to, AluType from, Rounding, std::uint64_t flags);
Selection convert_from_integer(AluType to, AluType from, Rounding, std::uint64_t flags);
std::optional<Selection> select_convert_pack(Modifiers&);  // cvt.pack
std::optional<Selection> select_convert_fp8(Modifiers&);   // to and from .e4m3x2, .e5m2x2

}  // namespace assay::sim
