// cvt from and to integers, and cvt.pack.
//
// A result of type s8 is extended to 32 bits: no register has 8 bits, and PTX extends a result to
// the width of its register. All other 8- and 16-bit results are zero-extended.
#include "sim/operations/alu_convert.h"

namespace assay::sim {
namespace {

using std::int16_t, std::int32_t, std::int64_t, std::int8_t;
using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;

constexpr InstrClass kClass = InstrClass::conversion;

template <class To>
using Stored = std::conditional_t<std::is_same_v<To, int8_t>, int32_t, To>;

template <class To, class From>
struct Resize {
  static Stored<To> apply(From x) { return static_cast<To>(x); }
};
template <class To, class From>
struct Clamp {
  static Stored<To> apply(From x) { return clamp_integer<To>(x); }
};

template <class To, class From, Rounding R, class Flags>
struct ToInteger {
  [[gnu::always_inline]] static Stored<To> apply(From value, Fixed fixed) {
    auto x = real_of(value);
    if constexpr (std::is_same_v<From, float>) x = select(Flags(fixed).ftz, flush(x), x);
    return to_integer<To, R>(x);
  }
};

// The host's conversion, which rounds to nearest.
template <class To, class From>
struct ToReal {
  static To apply(From x) { return static_cast<To>(x); }
};

// The other cases, lane by lane. The source type is in Instr::imm, above the flags.
constexpr int kSourceShift = 8;

struct SignMagnitude {
  bool negative;
  uint64_t magnitude;
};
SignMagnitude read_integer(Warp& w, std::uint32_t slot, AluType type, int l) {
  const auto from_signed = [](int64_t x) {
    return SignMagnitude{x < 0, x < 0 ? -static_cast<uint64_t>(x) : static_cast<uint64_t>(x)};
  };
  switch (type) {
    case AluType::u8: return {false, static_cast<uint8_t>(w.r32(slot).v[l])};
    case AluType::s8: return from_signed(static_cast<int8_t>(w.r32(slot).v[l]));
    case AluType::u16: return {false, static_cast<uint16_t>(w.r32(slot).v[l])};
    case AluType::s16: return from_signed(static_cast<int16_t>(w.r32(slot).v[l]));
    case AluType::u32: return {false, w.r32(slot).v[l]};
    case AluType::s32: return from_signed(static_cast<int32_t>(w.r32(slot).v[l]));
    case AluType::u64: return {false, w.r64(slot).v[l]};
    default: return from_signed(static_cast<int64_t>(w.r64(slot).v[l]));
  }
}

template <class To>
struct BitsOf {
  using Type = typename To::Bits;
};
template <>
struct BitsOf<float> {
  using Type = F32;
};
template <>
struct BitsOf<double> {
  using Type = F64;
};

template <class To, Rounding R>
void round_integers(Warp& w, const Instr& in) {
  const auto type = static_cast<AluType>(in.imm >> kSourceShift);
  const bool sat = (in.imm & ConvertFlags::kSat) != 0;
  std::conditional_t<sizeof(To) == 8, Lanes64, Lanes32> out;
  for (int l = 0; l < 32; ++l) {
    SignMagnitude x = read_integer(w, in.a, type, l);
    if (sat) x = {false, x.negative || x.magnitude == 0 ? uint64_t{0} : uint64_t{1}};
    out.v[l] = from_integer<typename BitsOf<To>::Type, R>(x.negative, x.magnitude);
  }
  write_active(w, in.d, out);
}

[[gnu::always_inline]] inline uint32_t saturate_to_bits(int32_t x, int bits, bool is_signed) {
  const int32_t high = static_cast<int32_t>((uint32_t{1} << (is_signed ? bits - 1 : bits)) - 1);
  const int32_t low = is_signed ? -high - 1 : 0;
  const int32_t clamped = x < low ? low : x > high ? high : x;
  return static_cast<uint32_t>(clamped) & ((uint32_t{1} << bits) - 1);
}

// b in the low bits, a above, and with three operands c above both.
template <int kBits, bool kSigned>
struct Pack2 {
  static uint32_t apply(int32_t a, int32_t b) {
    return saturate_to_bits(a, kBits, kSigned) << kBits | saturate_to_bits(b, kBits, kSigned);
  }
};
template <int kBits, bool kSigned>
struct Pack3 {
  static uint32_t apply(int32_t a, int32_t b, uint32_t c) {
    return c << 2 * kBits | Pack2<kBits, kSigned>::apply(a, b);
  }
};

}  // namespace

Selection convert_integers(AluType to, AluType from, bool sat) {
  return with_integer(to, [&]<class To>(To) {
    return with_integer(from, [&]<class From>(From) {
      return sat ? lanewise<Clamp<To, From>>(kClass) : lanewise<Resize<To, From>>(kClass);
    });
  });
}

Selection convert_to_integer(AluType to, AluType from, Rounding rounding, uint64_t flags) {
  return with_integer(to, [&]<class To>(To) {
    return with_real(from, [&]<class From>(From) {
      return with_rounding(rounding, [&](auto r) {
        // Only .ftz of f32 matters: the result saturates in any case.
        if constexpr (std::is_same_v<From, float>) {
          if ((flags & ConvertFlags::kFtz) != 0) {
            return lanewise<ToInteger<To, From, decltype(r)::value, ConvertFlags>>(kClass, 0,
                                                                                   flags);
          }
        }
        return lanewise<ToInteger<To, From, decltype(r)::value, NoFlags>>(kClass);
      });
    });
  });
}

Selection convert_from_integer(AluType to, AluType from, Rounding rounding, uint64_t flags) {
  const bool sat = (flags & ConvertFlags::kSat) != 0;
  if (rounding == Rounding::nearest_even && !sat && bits_of(to) >= 32) {
    return with_integer(from, [&]<class From>(From) {
      return to == AluType::f32 ? lanewise<ToReal<float, From>>(kClass)
                                : lanewise<ToReal<double, From>>(kClass);
    });
  }
  Selection s;
  s.cls = kClass;
  s.imm = flags | static_cast<uint64_t>(from) << kSourceShift;
  s.operands = {bits_of(to) == 64 ? OperandForm::dst64 : OperandForm::dst32,
                bits_of(from) == 64 ? OperandForm::src64 : OperandForm::src32};
  s.run = with_real(to, [&]<class To>(To) {
            return with_rounding(rounding, [&](auto r) {
              Selection found;
              found.run = &round_integers<To, decltype(r)::value>;
              return found;
            });
          }).run;
  return s;
}

std::optional<Selection> select_convert_pack(Modifiers& m) {
  if (!m.take("sat")) m.unsupported();
  // Types below 8 bits are not register types: they count as plain words.
  if (m.take("u4")) return m.finish(lanewise<Pack3<4, false>>(kClass), 2);
  if (m.take("s4")) return m.finish(lanewise<Pack3<4, true>>(kClass), 2);
  if (m.take("u2")) return m.finish(lanewise<Pack3<2, false>>(kClass), 2);
  if (m.take("s2")) return m.finish(lanewise<Pack3<2, true>>(kClass), 2);
  if (m.type(1) != AluType::s32) m.unsupported();
  switch (m.type(0)) {
    case AluType::u16: return m.finish(lanewise<Pack2<16, false>>(kClass), 2);
    case AluType::s16: return m.finish(lanewise<Pack2<16, true>>(kClass), 2);
    case AluType::u8: return m.finish(lanewise<Pack3<8, false>>(kClass), 3);
    case AluType::s8: return m.finish(lanewise<Pack3<8, true>>(kClass), 3);
    default: m.unsupported();
  }
}

}  // namespace assay::sim
