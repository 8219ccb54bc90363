#include "sim/operations/alu_fixture.h"

namespace assay::sim {
namespace {

using reference::Quad;
using u32 = std::uint32_t;

template <class T>
constexpr reference::Format kFormat = reference::kF16;
template <>
constexpr reference::Format kFormat<Bfloat> = reference::kBf16;
template <class T>
const std::string kName = "f16";
template <>
const std::string kName<Bfloat> = "bf16";

template <class T>
double value(T x) {
  return reference::value_of(kFormat<T>, x.bits);
}
template <class T>
bool is_nan(T x) {
  return std::isnan(value(x));
}
template <class T>
T flushed(T x) {
  const u32 sign = x.bits & 0x8000;
  return std::fpclassify(value(x)) != FP_ZERO && (x.bits & reference::infinity_of(kFormat<T>)) == 0
             ? T{sign}
             : x;
}

// Rounds the result of op once: from the exact value if finite, otherwise as with doubles.
template <class T, class... A, class Op>
T rounded(Op op, bool sat, bool relu, A... a) {
  const double special = op(value(a)...);
  if (std::isnan(special)) return T{sat ? 0u : 0x7fffu};
  const bool finite = (std::isfinite(value(a)) && ...);
  T out;
  if (!finite) {
    out = {static_cast<u32>(reference::round_double(kFormat<T>, special, Rounding::nearest_even))};
  } else {
    const Quad exact = op(static_cast<Quad>(value(a))...);
    out = {static_cast<u32>(
        reference::round_to(kFormat<T>, exact, std::signbit(special), Rounding::nearest_even))};
  }
  const u32 one = std::is_same_v<T, Half> ? 0x3c00 : 0x3f80;
  if (sat || relu) out.bits = out.bits & 0x8000 ? 0 : out.bits;
  if (sat) out.bits = std::min(out.bits, one);
  return out;
}

// Applies f to both halves.
template <class T, class F, class... Words>
u32 halves(const F& f, Words... words) {
  const u32 low = f(T{words & 0xffff}...).bits, high = f(T{words >> 16}...).bits;
  return low | high << 16;
}

template <class T, class F>
void check_1(const std::string& name, F f) {
  check(name + kName<T> + " d, a", [=](T a) { return f(a); });
  check(name + kName<T> + "x2 d, a", [=](u32 a) { return halves<T>(f, a); });
}
template <class T, class F>
void check_2(const std::string& name, F f, int batches = 1500) {
  check(
      name + kName<T> + " d, a, b", [=](T a, T b) { return f(a, b); }, batches);
  check(
      name + kName<T> + "x2 d, a, b", [=](u32 a, u32 b) { return halves<T>(f, a, b); }, 400);
}
template <class T, class F>
void check_3(const std::string& name, F f, int batches = 3000) {
  check(
      name + kName<T> + " d, a, b, c", [=](T a, T b, T c) { return f(a, b, c); }, batches);
  check(
      name + kName<T> + "x2 d, a, b, c", [=](u32 a, u32 b, u32 c) { return halves<T>(f, a, b, c); },
      400);
}

struct Plus {
  double operator()(double a, double b) const { return a + b; }
  Quad operator()(Quad a, Quad b) const { return reference::add(a, b); }
};
struct Minus {
  double operator()(double a, double b) const { return a - b; }
  Quad operator()(Quad a, Quad b) const { return reference::add(a, -b); }
};
struct Times {
  double operator()(double a, double b) const { return a * b; }
  Quad operator()(Quad a, Quad b) const { return a * b; }
};
struct TimesPlus {
  double operator()(double a, double b, double c) const { return a * b + c; }
  Quad operator()(Quad a, Quad b, Quad c) const { return reference::add(a * b, c); }
};

template <class T, class Op>
void check_sum(const std::string& name, Op op) {
  check_2<T>(name + ".", [=](T a, T b) { return rounded<T>(op, false, false, a, b); });
  check_2<T>(
      name + ".rn.", [=](T a, T b) { return rounded<T>(op, false, false, a, b); }, 50);
  if constexpr (std::is_same_v<T, Half>) {
    check_2<T>(
        name + ".sat.", [=](T a, T b) { return rounded<T>(op, true, false, a, b); }, 300);
    check_2<T>(name + ".ftz.", [=](T a, T b) {
      return flushed(rounded<T>(op, false, false, flushed(a), flushed(b)));
    });
    check_2<T>(
        name + ".rn.ftz.sat.",
        [=](T a, T b) { return flushed(rounded<T>(op, true, false, flushed(a), flushed(b))); },
        300);
  } else {
    expect_unsupported(name + ".sat.bf16 d, a, b");
    expect_unsupported(name + ".ftz.bf16 d, a, b");
  }
}

template <class T>
void check_arithmetic() {
  check_sum<T>("add", Plus());
  check_sum<T>("sub", Minus());
  check_sum<T>("mul", Times());
  check_3<T>(
      "fma.rn.", [](T a, T b, T c) { return rounded<T>(TimesPlus(), false, false, a, b, c); },
      4000);
  check_3<T>("fma.rn.relu.",
             [](T a, T b, T c) { return rounded<T>(TimesPlus(), false, true, a, b, c); });
}

TEST(AluHalf, Arithmetic) {
  check_arithmetic<Half>();
  check_3<Half>("fma.rn.sat.", [](Half a, Half b, Half c) {
    return rounded<Half>(TimesPlus(), true, false, a, b, c);
  });
  check_3<Half>("fma.rn.ftz.", [](Half a, Half b, Half c) {
    return flushed(rounded<Half>(TimesPlus(), false, false, flushed(a), flushed(b), flushed(c)));
  });
  check_3<Half>("fma.rn.ftz.relu.", [](Half a, Half b, Half c) {
    return flushed(rounded<Half>(TimesPlus(), false, true, flushed(a), flushed(b), flushed(c)));
  });
  expect_unsupported("fma.f16 d, a, b, c");
  expect_unsupported("fma.rz.f16 d, a, b, c");
  expect_unsupported("fma.rn.oob.f16 d, a, b, c");
  expect_unsupported("fma.rn.sat.relu.f16 d, a, b, c");
}
TEST(AluHalf, ArithmeticOfBf16) { check_arithmetic<Bfloat>(); }

// Every pair of significands, at exponents where the sum or product loses digits, so that rounding
// twice would show.
TEST(AluHalf, FmaRoundsOnce) {
  for (const bool bfloat : {false, true}) {
    Alu fma(bfloat ? "fma.rn.bf16 d, a, b, c" : "fma.rn.f16 d, a, b, c");
    const int fraction = bfloat ? 7 : 10;
    const u32 one = bfloat ? 0x3f80 : 0x3c00;
    reference::Operands operands(13);
    for (int i = 0; i < 20000; ++i) {
      for (int l = 0; l < 32; ++l) {
        const auto bits = operands.bits();
        const u32 mask = (1u << fraction) - 1;
        const u32 a = one | (bits & mask), b = one | (bits >> 16 & mask);
        // c far below the product, and a product near a tie.
        const int down = 11 + static_cast<int>(bits >> 32 & 3);
        const u32 c =
            (one - (static_cast<u32>(down) << fraction)) | (bits >> 40 & 0x8000) | (bits >> 48 & 1);
        fma.set(1, l, a), fma.set(2, l, b), fma.set(3, l, c);
      }
      fma.run();
      for (int l = 0; l < 32; ++l) {
        const u32 a = fma.r32(1).v[l], b = fma.r32(2).v[l], c = fma.r32(3).v[l];
        const u32 want =
            bfloat
                ? rounded<Bfloat>(TimesPlus(), false, false, Bfloat{a}, Bfloat{b}, Bfloat{c}).bits
                : rounded<Half>(TimesPlus(), false, false, Half{a}, Half{b}, Half{c}).bits;
        ASSERT_EQ(fma.r32(0).v[l], want) << std::hex << a << " * " << b << " + " << c;
      }
      if (i > 2000) i += 9;
    }
  }
}

// Runs a unary instruction on all 65536 values, in both halves if packed.
template <class F>
void check_all(const std::string& text, F reference) {
  SCOPED_TRACE(text);
  Alu alu(text);
  const bool packed = text.find("16x2") != std::string::npos;
  for (u32 first = 0; first < 0x10000; first += 32) {
    for (int l = 0; l < 32; ++l) {
      const u32 x = first + static_cast<u32>(l);
      alu.set(1, l, packed ? x | (x ^ 0x5a5a) << 16 : x);
    }
    alu.run();
    for (int l = 0; l < 32; ++l) {
      const u32 x = first + static_cast<u32>(l);
      ASSERT_PRED3(reference, x, alu.r32(0).v[l] & 0xffff, 0) << std::hex << x;
      if (packed) {
        ASSERT_PRED3(reference, x ^ 0x5a5a, alu.r32(0).v[l] >> 16, 0) << std::hex << x;
      } else {
        ASSERT_EQ(alu.r32(0).v[l] >> 16, 0u);
      }
    }
  }
}

TEST(AluHalf, Signs) {
  for (const char* type : {"f16", "f16x2", "bf16", "bf16x2"}) {
    check_all(std::string("neg.") + type + " d, a",
              [](u32 x, u32 y, int) { return y == (x ^ 0x8000); });
    check_all(std::string("abs.") + type + " d, a",
              [](u32 x, u32 y, int) { return y == (x & 0x7fff); });
  }
  check_all("neg.ftz.f16 d, a",
            [](u32 x, u32 y, int) { return y == (flushed(Half{x}).bits ^ 0x8000); });
  check_all("abs.ftz.f16x2 d, a",
            [](u32 x, u32 y, int) { return y == (flushed(Half{x}).bits & 0x7fff); });
}

// The error bounds of the documentation.
template <class T>
auto within(double (*function)(double), double relative, double absolute, bool ftz) {
  return [=](u32 x, u32 y, int) {
    const T in = ftz ? flushed(T{x}) : T{x};
    const double exact = function(value(in)), got = value(T{y});
    if (std::isnan(exact)) return y == 0x7fff;
    const double limit = value(T{static_cast<u32>(reference::infinity_of(kFormat<T>)) - 1});
    if (std::isinf(got) || std::fabs(exact) > limit * (1 + relative)) {
      return std::fabs(exact) > limit && got == (exact < 0 ? -INFINITY : INFINITY);
    }
    const double least =
        std::ldexp(1.0, kFormat<T>.min_exponent - (ftz ? 0 : kFormat<T>.precision));
    return std::fabs(got - exact) <= std::max({std::fabs(exact) * relative, absolute, least});
  };
}

TEST(AluHalf, Functions) {
  for (const char* x2 : {"", "x2"}) {
    const std::string tail = std::string(x2) + " d, a";
    check_all("ex2.approx.f16" + tail, within<Half>(std::exp2, std::exp2(-9.9), 0, false));
    check_all("ex2.approx.ftz.f16" + tail, within<Half>(std::exp2, std::exp2(-9.9), 0, true));
    check_all("ex2.approx.ftz.bf16" + tail, within<Bfloat>(std::exp2, std::exp2(-7), 0, true));
    check_all("tanh.approx.f16" + tail, within<Half>(std::tanh, 0, std::exp2(-10.987), false));
    check_all("tanh.approx.bf16" + tail, within<Bfloat>(std::tanh, 0, std::exp2(-8), false));
  }
  expect_unsupported("ex2.approx.bf16 d, a");
  expect_unsupported("tanh.approx.ftz.f16 d, a");
  expect_unsupported("ex2.f16 d, a");
}

template <class T>
T extreme_of(T a, T b, bool max, bool nan, bool xor_sign) {
  const u32 sign = xor_sign ? (a.bits ^ b.bits) & 0x8000 : 0;
  if (xor_sign) a.bits &= 0x7fff, b.bits &= 0x7fff;
  if (is_nan(a) || is_nan(b)) {
    if (nan || (is_nan(a) && is_nan(b))) return T{0x7fff};
    return T{(is_nan(a) ? b : a).bits | sign};
  }
  const double x = value(a), y = value(b);
  const bool first = x == y ? (a.bits >> 15 != 0) != max : (x < y) != max;
  return T{(first ? a : b).bits | sign};
}
template <class T>
void check_extremes(bool ftz) {
  for (const bool max : {false, true}) {
    for (const bool nan : {false, true}) {
      for (const bool xor_sign : {false, true}) {
        const std::string name = std::string(max ? "max" : "min") + (ftz ? ".ftz" : "") +
                                 (nan ? ".NaN" : "") + (xor_sign ? ".xorsign.abs." : ".");
        check_2<T>(
            name,
            [=](T a, T b) {
              if (ftz) a = flushed(a), b = flushed(b);
              return extreme_of(a, b, max, nan, xor_sign);
            },
            500);
      }
    }
  }
}
TEST(AluHalf, Extremes) {
  check_extremes<Half>(false);
  check_extremes<Half>(true);
  check_extremes<Bfloat>(false);
  expect_unsupported("min.ftz.bf16 d, a, b");
  expect_unsupported("max.xorsign.f16 d, a, b");
}

}  // namespace
}  // namespace assay::sim
