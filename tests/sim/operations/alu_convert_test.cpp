#include "sim/operations/alu_fixture.h"

namespace assay::sim {
namespace {

using reference::Quad;
using u8 = std::uint8_t;
using s8 = std::int8_t;
using u16 = std::uint16_t;
using s16 = std::int16_t;
using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;
using s128 = __int128;

template <class T>
struct Type;
#define ASSAY_TYPE(T, text)                   \
  template <>                                 \
  struct Type<T> {                            \
    static constexpr const char* name = text; \
  };
ASSAY_TYPE(u8, "u8")
ASSAY_TYPE(s8, "s8")
ASSAY_TYPE(u16, "u16")
ASSAY_TYPE(s16, "s16")
ASSAY_TYPE(u32, "u32")
ASSAY_TYPE(s32, "s32")
ASSAY_TYPE(u64, "u64")
ASSAY_TYPE(s64, "s64")
ASSAY_TYPE(Half, "f16")
ASSAY_TYPE(Bfloat, "bf16")
ASSAY_TYPE(float, "f32")
ASSAY_TYPE(double, "f64")
#undef ASSAY_TYPE

template <class F>
void for_integers(F f) {
  f(u8{}), f(s8{}), f(u16{}), f(s16{}), f(u32{}), f(s32{}), f(u64{}), f(s64{});
}
template <class F>
void for_reals(F f) {
  f(Half{}), f(Bfloat{}), f(float{}), f(double{});
}

template <class T>
reference::Format format() {
  if constexpr (std::is_same_v<T, Half>) return reference::kF16;
  if constexpr (std::is_same_v<T, Bfloat>) return reference::kBf16;
  if constexpr (std::is_same_v<T, float>) return reference::kF32;
  return reference::kF64;
}
template <class T>
double value(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x;
  } else {
    return reference::value_of(format<T>(), x.bits);
  }
}
template <class T>
T from_bits(u64 bits) {
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(bits);
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(static_cast<u32>(bits));
  if constexpr (is_half<T>) return T{static_cast<u32>(bits)};
}
template <class To, class From>
std::string name(const std::string& modifiers, const char* operands = " d, a") {
  return "cvt" + modifiers + "." + Type<To>::name + "." + Type<From>::name + operands;
}

const char* integral(Rounding r) {
  switch (r) {
    case Rounding::toward_zero: return ".rzi";
    case Rounding::down: return ".rmi";
    case Rounding::up: return ".rpi";
    default: return ".rni";
  }
}
const char* suffix(Rounding r) {
  switch (r) {
    case Rounding::toward_zero: return ".rz";
    case Rounding::down: return ".rm";
    case Rounding::up: return ".rp";
    default: return ".rn";
  }
}
double whole(double x, Rounding r) {
  switch (r) {
    case Rounding::toward_zero: return std::trunc(x);
    case Rounding::down: return std::floor(x);
    case Rounding::up: return std::ceil(x);
    default: {  // half to even by the remainder
      const double down = std::floor(x), rest = x - down;
      const bool odd = std::fmod(down, 2) != 0;
      const double out = rest > 0.5 || (rest == 0.5 && odd) ? down + 1 : down;
      return std::copysign(out, x);
    }
  }
}

// The result as its register holds it: s8 is extended.
template <class To>
auto stored(To x) {
  if constexpr (std::is_same_v<To, s8>) {
    return s32{x};
  } else {
    return x;
  }
}

TEST(AluConvert, IntegersToIntegers) {
  for_integers([]<class To>(To) {
    for_integers([]<class From>(From) {
      check(
          name<To, From>(""), [](From x) { return stored(static_cast<To>(x)); }, 100);
      check(
          name<To, From>(".sat"),
          [](From x) {
            const s128 low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
            return stored(static_cast<To>(std::min(std::max(s128{x}, low), high)));
          },
          100);
    });
  });
}

template <class To, class From>
auto to_integer_reference(double x, Rounding r) {
  if (std::isnan(x)) {
    const bool top = sizeof(To) == 8 || std::is_same_v<From, double>;
    return stored(static_cast<To>(top ? u64{1} << (sizeof(To) * 8 - 1) : 0));
  }
  const double w = whole(x, r);
  if (w <= static_cast<double>(std::numeric_limits<To>::min())) {
    return stored(std::numeric_limits<To>::min());
  }
  if (w >= static_cast<double>(std::numeric_limits<To>::max())) {
    return stored(std::numeric_limits<To>::max());
  }
  return stored(static_cast<To>(w));
}

TEST(AluConvert, RealsToIntegers) {
  for (const Rounding r : reference::kRoundings) {
    for_integers([&]<class To>(To) {
      for_reals([&]<class From>(From) {
        check(
            name<To, From>(integral(r)),
            [=](From x) { return to_integer_reference<To, From>(value(x), r); }, 200);
      });
      check(
          name<To, float>(std::string(integral(r)) + ".ftz"),
          [=](float x) {
            return to_integer_reference<To, float>(std::fabs(x) < 0x1p-126f ? 0 : x, r);
          },
          100);
    });
  }
  check("cvt.rni.sat.s8.f32 d, a", [](float x) {  // .sat does what happens anyway
    return to_integer_reference<s8, float>(x, Rounding::nearest_even);
  });
  expect_unsupported("cvt.s32.f32 d, a");
  expect_unsupported("cvt.rn.s32.f32 d, a");
}

// Halves and the values between them, near every power of two and the ends of the types.
TEST(AluConvert, RealsToIntegersAtTies) {
  for (const Rounding r : reference::kRoundings) {
    Alu s32_f32(name<s32, float>(integral(r))), u32_f64(name<u32, double>(integral(r)));
    Alu s64_f64(name<s64, double>(integral(r))), u8_f32(name<u8, float>(integral(r)));
    for (int exponent = -3; exponent < 66; ++exponent) {
      for (int l = 0; l < 32; ++l) {
        const double x = (l < 16 ? 1 : -1) * (std::ldexp(1, exponent) + (l % 16 - 8) * 0.25);
        s32_f32.set(1, l, static_cast<float>(x)), u8_f32.set(1, l, static_cast<float>(x));
        u32_f64.set(1, l, x), s64_f64.set(1, l, x);
      }
      s32_f32.run(), u32_f64.run(), s64_f64.run(), u8_f32.run();
      for (int l = 0; l < 32; ++l) {
        const double x = std::bit_cast<double>(u32_f64.r64(1).v[l]);
        const float f = std::bit_cast<float>(s32_f32.r32(1).v[l]);
        ASSERT_EQ(s32_f32.r32(0).v[l], u32((to_integer_reference<s32, float>(f, r)))) << f;
        ASSERT_EQ(u8_f32.r32(0).v[l], (to_integer_reference<u8, float>(f, r))) << f;
        ASSERT_EQ(u32_f64.r32(0).v[l], (to_integer_reference<u32, double>(x, r))) << x;
        ASSERT_EQ(s64_f64.r64(0).v[l], u64((to_integer_reference<s64, double>(x, r)))) << x;
      }
    }
  }
}

TEST(AluConvert, IntegersToReals) {
  for (const Rounding r : reference::kRoundings) {
    for_reals([&]<class To>(To) {
      for_integers([&]<class From>(From) {
        check(
            name<To, From>(suffix(r)),
            [=](From x) {
              return from_bits<To>(
                  reference::round_to(format<To>(), static_cast<Quad>(x), false, r));
            },
            200);
      });
      check(
          name<To, s32>(std::string(suffix(r)) + ".sat"),
          [=](s32 x) {
            return from_bits<To>(reference::round_to(format<To>(), x > 0 ? 1 : 0, false, r));
          },
          50);
    });
  }
  check("cvt.rn.ftz.f32.s32 d, a", [](s32 x) { return static_cast<float>(x); });
  expect_unsupported("cvt.f32.s32 d, a");
  expect_unsupported("cvt.rni.f32.s32 d, a");
}

template <class To, class From>
To convert(From x, Rounding r, bool ftz = false, bool sat = false, bool relu = false) {
  double v = value(x);
  if (ftz && std::is_same_v<From, float> && std::fabs(v) < 0x1p-126) v = std::copysign(0.0, v);
  if (sat) v = std::isnan(v) || v <= 0 ? 0 : std::min(v, 1.0);
  if (relu && v <= 0) v = 0;
  if (std::isnan(v) && std::is_same_v<To, double> && !std::is_same_v<From, double>) {
    // A widened NaN keeps its sign and payload; for f16 it is the canonical NaN.
    u64 bits;
    if constexpr (std::is_same_v<From, float>) {
      bits = std::bit_cast<u32>(x);
    } else if constexpr (std::is_same_v<From, Bfloat>) {
      bits = u64{x.bits} << 16;
    } else {
      bits = 0x7fffffff;
    }
    return from_bits<To>((bits & 0x80000000u) << 32 | u64{0x7ff8} << 48 | (bits & 0x7fffff) << 29);
  }
  if (std::isnan(v) && std::is_same_v<To, float> && std::is_same_v<From, Bfloat>) {
    if constexpr (std::is_same_v<From, Bfloat>) return from_bits<To>(u64{x.bits} << 16);
  }
  if (std::isnan(v) && std::is_same_v<To, double>) return from_bits<To>(0xfff8000000000000);
  const u64 bits = reference::round_double(format<To>(), v, r);
  To out = from_bits<To>(bits);
  if (ftz && std::is_same_v<To, float> && std::fabs(value(out)) < 0x1p-126) {
    out = from_bits<To>(bits & 0x80000000u);
  }
  return out;
}

TEST(AluConvert, NarrowingReals) {
  for (const Rounding r : reference::kRoundings) {
    const auto one = [&]<class To, class From>(To, From) {
      const std::string s = suffix(r);
      check(
          name<To, From>(s), [=](From x) { return convert<To>(x, r); }, 700);
      check(
          name<To, From>(s + ".sat"), [=](From x) { return convert<To>(x, r, false, true); }, 100);
      if (is_half<To>) {
        check(
            name<To, From>(s + ".relu"),
            [=](From x) { return convert<To>(x, r, false, false, true); }, 100);
      }
      if (std::is_same_v<To, float> || std::is_same_v<From, float>) {
        check(
            name<To, From>(s + ".ftz"), [=](From x) { return convert<To>(x, r, true); }, 400);
      } else {
        expect_unsupported(name<To, From>(s + ".ftz"));
      }
    };
    one(Half{}, float{}), one(Bfloat{}, float{});
    one(Half{}, double{}), one(Bfloat{}, double{}), one(float{}, double{});
    one(Half{}, Bfloat{}), one(Bfloat{}, Half{});
  }
  expect_unsupported("cvt.f16.f32 d, a");
  expect_unsupported("cvt.f32.f64 d, a");
  expect_unsupported("cvt.rni.f16.f32 d, a");
}

TEST(AluConvert, WideningReals) {
  const auto one = []<class To, class From>(To, From) {
    check(name<To, From>(""), [](From x) { return convert<To>(x, Rounding::nearest_even); });
    check(name<To, From>(".sat"),
          [](From x) { return convert<To>(x, Rounding::nearest_even, false, true); });
    expect_unsupported(name<To, From>(".rn"));
  };
  one(float{}, Half{}), one(float{}, Bfloat{}), one(double{}, Half{}), one(double{}, Bfloat{});
  one(double{}, float{});
  check("cvt.ftz.f64.f32 d, a",
        [](float x) { return convert<double>(x, Rounding::nearest_even, true); });
  check("cvt.ftz.f32.bf16 d, a",
        [](Bfloat x) { return convert<float>(x, Rounding::nearest_even, true); });
}

TEST(AluConvert, EveryHalfToFloat) {
  Alu f16("cvt.f32.f16 d, a"), bf16("cvt.f32.bf16 d, a"), back("cvt.rn.f16.f32 d, a");
  for (u32 first = 0; first < 0x10000; first += 32) {
    for (int l = 0; l < 32; ++l) f16.set(1, l, first + l), bf16.set(1, l, first + l);
    f16.run(), bf16.run();
    back.r32(1) = f16.r32(0);
    back.run();
    for (int l = 0; l < 32; ++l) {
      const u32 x = first + static_cast<u32>(l);
      const double v = reference::value_of(reference::kF16, x);
      ASSERT_EQ(f16.r32(0).v[l], std::isnan(v) ? 0x7fffffffu : std::bit_cast<u32>(float(v)));
      ASSERT_EQ(bf16.r32(0).v[l], x << 16);
      ASSERT_EQ(back.r32(0).v[l], std::isnan(v) ? 0x7fffu : x);
    }
  }
}

// Every f16 and bf16 value, the ties between them, and the neighbours of both.
TEST(AluConvert, FloatToHalfAtTies) {
  for (const Rounding r : {Rounding::nearest_even, Rounding::toward_zero}) {
    for (const bool bfloat : {false, true}) {
      const reference::Format f = bfloat ? reference::kBf16 : reference::kF16;
      Alu cvt(std::string("cvt") + suffix(r) + (bfloat ? ".bf16" : ".f16") + ".f32 d, a");
      for (u32 h = 0; h < reference::infinity_of(f); h += 5) {
        const auto low = static_cast<float>(reference::value_of(f, h));
        const auto next = static_cast<float>(reference::value_of(f, h + 1));
        const float tie = std::isinf(next)
                              ? low + (low - static_cast<float>(reference::value_of(f, h - 1))) / 2
                              : low + (next - low) / 2;
        for (int l = 0; l < 32; ++l) {
          const u32 base = std::bit_cast<u32>(l % 16 < 8 ? low : tie);
          const u32 bits = base + static_cast<u32>(l % 8) - 4;
          cvt.set(1, l, (bits & 0x7fffffff) | (l < 16 ? 0 : 0x80000000u));
        }
        cvt.run();
        for (int l = 0; l < 32; ++l) {
          const float x = std::bit_cast<float>(cvt.r32(1).v[l]);
          ASSERT_EQ(cvt.r32(0).v[l], reference::round_double(f, x, r)) << std::hexfloat << x;
        }
      }
    }
  }
}

TEST(AluConvert, SameType) {
  for_reals([]<class T>(T) {
    for (const Rounding r : reference::kRoundings) {
      const auto rounded = [=](T x) {
        return convert<T>(from_bits<T>(reference::round_double(format<T>(), whole(value(x), r), r)),
                          r);
      };
      check(name<T, T>(integral(r)), rounded, 500);
      check(
          name<T, T>(std::string(integral(r)) + ".sat"),
          [=](T x) { return convert<T>(rounded(x), r, false, true); }, 100);
    }
    const Rounding r = Rounding::nearest_even;
    check(name<T, T>(""), [=](T x) { return convert<T>(x, r); });
    check(name<T, T>(".sat"), [=](T x) { return convert<T>(x, r, false, true); });
    expect_unsupported(name<T, T>(".rn"));
  });
  check("cvt.ftz.f32.f32 d, a",
        [](float x) { return convert<float>(x, Rounding::nearest_even, true); });
  check("cvt.ftz.sat.f32.f32 d, a",
        [](float x) { return convert<float>(x, Rounding::nearest_even, true, true); });
  check("cvt.rpi.ftz.f32.f32 d, a", [](float x) {
    return std::isnan(x)              ? std::bit_cast<float>(0x7fffffffu)
           : std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x)
                                      : std::ceil(x);
  });
}

TEST(AluConvert, Tf32) {
  const auto tf32 = [](float x, Rounding r, bool relu) {
    if (std::isnan(x)) return 0x7fffffffu;
    if (relu && x <= 0) x = 0;
    return static_cast<u32>(reference::round_double(reference::kTf32, x, r) << 13);
  };
  check(
      "cvt.rna.tf32.f32 d, a", [=](float x) { return tf32(x, Rounding::nearest_away, false); },
      3000);
  check(
      "cvt.rn.tf32.f32 d, a", [=](float x) { return tf32(x, Rounding::nearest_even, false); },
      3000);
  check("cvt.rz.tf32.f32 d, a", [=](float x) { return tf32(x, Rounding::toward_zero, false); });
  check("cvt.rn.relu.tf32.f32 d, a",
        [=](float x) { return tf32(x, Rounding::nearest_even, true); });
}

template <class T>
void check_packed(const std::string& type) {
  for (const Rounding r : {Rounding::nearest_even, Rounding::toward_zero}) {
    for (const bool relu : {false, true}) {
      check("cvt" + std::string(suffix(r)) + (relu ? ".relu." : ".") + type + "x2.f32 d, a, b",
            [=](float a, float b) {
              return convert<T>(a, r, false, false, relu).bits << 16 |
                     convert<T>(b, r, false, false, relu).bits;
            });
    }
  }
}
TEST(AluConvert, PackedHalves) {
  check_packed<Half>("f16");
  check_packed<Bfloat>("bf16");
}

TEST(AluConvert, Pack) {
  const auto clamp = [](s32 x, s32 low, s32 high) { return u32(std::min(std::max(x, low), high)); };
  check("cvt.pack.sat.u16.s32 d, a, b",
        [=](s32 a, s32 b) { return clamp(a, 0, 65535) << 16 | clamp(b, 0, 65535); });
  check("cvt.pack.sat.s16.s32 d, a, b", [=](s32 a, s32 b) {
    return clamp(a, -32768, 32767) << 16 | (clamp(b, -32768, 32767) & 0xffff);
  });
  check("cvt.pack.sat.u8.s32.b32 d, a, b, c",
        [=](s32 a, s32 b, u32 c) { return c << 16 | clamp(a, 0, 255) << 8 | clamp(b, 0, 255); });
  check("cvt.pack.sat.s8.s32.b32 d, a, b, c", [=](s32 a, s32 b, u32 c) {
    return c << 16 | (clamp(a, -128, 127) & 255) << 8 | (clamp(b, -128, 127) & 255);
  });
  check("cvt.pack.sat.s4.s32.b32 d, a, b, c", [=](s32 a, s32 b, u32 c) {
    return c << 8 | (clamp(a, -8, 7) & 15) << 4 | (clamp(b, -8, 7) & 15);
  });
  check("cvt.pack.sat.u2.s32.b32 d, a, b, c",
        [=](s32 a, s32 b, u32 c) { return c << 4 | clamp(a, 0, 3) << 2 | clamp(b, 0, 3); });
}

// The 8-bit formats by their definition (Micikevicius et al., "FP8 Formats for Deep Learning",
// 2022, table 1): the value of each of the 256 codes, and for a number the nearest code.
struct Eight {
  int fraction_bits, bias;
  u32 highest;  // code of the largest number
  bool infinities;

  double value(u32 code) const {
    const u32 magnitude = code & 0x7f, fraction = magnitude & ((1u << fraction_bits) - 1);
    const int exponent = static_cast<int>(magnitude >> fraction_bits);
    const double sign = (code & 0x80) != 0 ? -1 : 1;
    if (magnitude > highest) {
      return infinities && magnitude == highest + 1 ? sign * HUGE_VAL
                                                    : std::numeric_limits<double>::quiet_NaN();
    }
    const double scaled = fraction / std::exp2(fraction_bits);
    return sign * (exponent == 0 ? scaled * std::exp2(1 - bias)
                                 : (1 + scaled) * std::exp2(exponent - bias));
  }
  // With .satfinite. Of two equally near codes it takes the even one.
  u32 code(double x) const {
    if (std::isnan(x)) return 0x7f;
    const double magnitude = std::min(std::fabs(x), value(highest));
    u32 best = 0;
    for (u32 c = 0; c <= highest; ++c) {
      const double distance = std::fabs(value(c) - magnitude);
      const double held = std::fabs(value(best) - magnitude);
      if (distance < held || (distance == held && c % 2 == 0)) best = c;
    }
    return best | (std::signbit(x) ? 0x80 : 0);
  }
};
constexpr Eight kE4m3{3, 7, 0x7e, false}, kE5m2{2, 15, 0x7b, true};

double relu_of(double x, bool relu) { return relu && !std::isnan(x) && !(x > 0) ? 0.0 : x; }

TEST(AluConvert, ToEightBits) {
  EXPECT_EQ(kE4m3.value(0x7e), 448);
  EXPECT_EQ(kE4m3.value(1), std::exp2(-9));
  EXPECT_EQ(kE5m2.value(0x7b), 57344);
  EXPECT_EQ(kE5m2.value(1), std::exp2(-16));
  for (const auto& [name, format] : {std::pair("e4m3x2", kE4m3), std::pair("e5m2x2", kE5m2)}) {
    for (const bool relu : {false, true}) {
      const std::string before = std::string("cvt.rn.satfinite.") + (relu ? "relu." : "") + name;
      const auto both = [relu, f = format](double a, double b) {
        return static_cast<u16>(f.code(relu_of(a, relu)) << 8 | f.code(relu_of(b, relu)));
      };
      check(
          before + ".f32 d, a, b", [=](float a, float b) { return both(a, b); }, 100);
      check(
          before + ".f16x2 d, a",
          [=](u32 a) { return both(value(Half{a >> 16}), value(Half{a & 0xffff})); }, 100);
    }
  }
}

// All numbers, the midpoints between them, and the neighbours of both.
TEST(AluConvert, ToEightBitsWhereItRounds) {
  for (const auto& [name, format] : {std::pair("e4m3x2", kE4m3), std::pair("e5m2x2", kE5m2)}) {
    Alu alu(std::string("cvt.rn.satfinite.") + name + ".f32 d, a, b");
    std::vector<float> numbers;
    for (u32 c = 0; c < format.highest; ++c) {
      const auto x = static_cast<float>(format.value(c));
      const auto middle = static_cast<float>((format.value(c) + format.value(c + 1)) / 2);
      for (const float y : {x, middle}) {
        for (const float z : {y, std::nextafter(y, 0.0f), std::nextafter(y, HUGE_VALF)}) {
          numbers.push_back(z);
          numbers.push_back(-z);
        }
      }
    }
    for (const float x : {448.f, 464.f, 465.f, 57344.f, 61440.f, 65536.f, 1e30f, HUGE_VALF, NAN})
      numbers.insert(numbers.end(), {x, -x});
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const float a = numbers[i], b = numbers[numbers.size() - 1 - i];
      alu.set(1, 5, a);
      alu.set(2, 5, b);
      alu.run();
      ASSERT_EQ(alu.get<u32>(0, 5), format.code(a) << 8 | format.code(b))
          << name << ' ' << a << ' ' << b;
    }
  }
}

TEST(AluConvert, FromEightBits) {
  for (const auto& [name, format] : {std::pair("e4m3x2", kE4m3), std::pair("e5m2x2", kE5m2)}) {
    for (const bool relu : {false, true}) {
      Alu alu(std::string("cvt.rn.") + (relu ? "relu." : "") + "f16x2." + name + " d, a");
      const auto half = [relu, f = format](u32 code) -> u32 {
        const double x = relu_of(f.value(code), relu);
        if (std::isnan(x)) return 0x7fff;
        if (std::isinf(x)) return x > 0 ? 0x7c00 : 0xfc00;
        return static_cast<u32>(
            reference::round_double(reference::kF16, x, Rounding::nearest_even));
      };
      for (u32 a = 0; a < 65536; ++a) {
        alu.set<u32>(1, 9, a);
        alu.run();
        ASSERT_EQ(alu.get<u32>(0, 9), half(a >> 8) << 16 | half(a & 255)) << name << ' ' << a;
      }
    }
  }
}

TEST(AluConvert, SatFinite) {
  const auto finite = [](u32 bits, u32 infinity) {
    return (bits & 0x7fff) == infinity ? (bits & 0x8000) | (infinity - 1) : bits;
  };
  check("cvt.rn.satfinite.f16.f32 d, a", [=](float a) {
    return static_cast<u16>(
        finite(convert<Half>(a, Rounding::nearest_even, false, false, false).bits, 0x7c00));
  });
  check("cvt.rz.relu.satfinite.bf16.f32 d, a", [=](float a) {
    return static_cast<u16>(
        finite(convert<Bfloat>(a, Rounding::toward_zero, false, false, true).bits, 0x7f80));
  });
  check("cvt.rn.satfinite.f16x2.f32 d, a, b", [=](float a, float b) {
    const auto one = [&](float x) {
      return finite(convert<Half>(x, Rounding::nearest_even, false, false, false).bits, 0x7c00);
    };
    return one(a) << 16 | one(b);
  });
  Alu tf32("cvt.rna.satfinite.tf32.f32 d, a");
  for (const auto& [from, to] :
       {std::pair(HUGE_VALF, 0x7f7fe000u), std::pair(-3.4028e38f, 0xff7fe000u),
        std::pair(1.0f, 0x3f800000u), std::pair(float{NAN}, 0x7fffffffu)}) {
    tf32.set(1, 0, from);
    tf32.run();
    EXPECT_EQ(tf32.get<u32>(0, 0), to) << from;
  }
}

TEST(AluConvert, RefusedAreFormatsOfLaterGpus) {
  for (const char* text :
       {"cvt.rn.e4m3x2.f32 d, a, b", "cvt.rs.f16x2.f32 d, a, b, c",
        "cvt.rn.satfinite.e2m1x2.f32 d, a, b", "cvt.rn.f16x2.e2m1x2 d, a",
        "cvt.rs.satfinite.e4m3x4.f32 d, a, b", "cvt.rn.satfinite.f32.f64 d, a"}) {
    expect_unsupported(text);
  }
}

}  // namespace
}  // namespace assay::sim
