#include "sim/operations/alu_fixture.h"

namespace assay::sim {
namespace {

using reference::Quad;

const char* suffix(Rounding r) {
  switch (r) {
    case Rounding::toward_zero: return ".rz";
    case Rounding::down: return ".rm";
    case Rounding::up: return ".rp";
    default: return ".rn";
  }
}

float canonical_nan(float x) { return std::isnan(x) ? std::bit_cast<float>(0x7fffffffu) : x; }
double canonical_nan(double x) {
  return std::isnan(x) ? std::bit_cast<double>(0xfff8000000000000u) : x;
}
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
float saturated(float x) { return std::isnan(x) || x <= 0 ? 0.0f : std::min(x, 1.0f); }

// The host's operation in the given rounding mode, with the modifiers applied around it.
template <class Op, class... A>
auto with_modifiers(Rounding rounding, bool ftz, bool sat, Op op) {
  return [=](A... a) {
    if (ftz) ((a = flushed(a)), ...);
    float x = reference::in_mode(rounding, op, a...);
    if (ftz) x = flushed(x);
    return sat ? saturated(x) : canonical_nan(x);
  };
}

template <class... A, class Op>
void check_f32(const std::string& opcode, const char* operands, bool saturates, Op op) {
  for (const Rounding rounding : reference::kRoundings) {
    for (const bool ftz : {false, true}) {
      for (const bool sat : {false, true}) {
        if (sat && !saturates) continue;
        check(opcode + suffix(rounding) + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + ".f32 " +
                  operands,
              with_modifiers<Op, A...>(rounding, ftz, sat, op), 600);
      }
    }
  }
}

TEST(AluFloat, SinglePrecision) {
  using F = float;
  check_f32<F, F>("add", "d, a, b", true, [](F a, F b) { return a + b; });
  check_f32<F, F>("sub", "d, a, b", true, [](F a, F b) { return a - b; });
  check_f32<F, F>("mul", "d, a, b", true, [](F a, F b) { return a * b; });
  check_f32<F, F, F>("fma", "d, a, b, c", true, [](F a, F b, F c) { return std::fma(a, b, c); });
  check_f32<F, F, F>("mad", "d, a, b, c", true, [](F a, F b, F c) { return std::fma(a, b, c); });
  check_f32<F, F>("div", "d, a, b", false, [](F a, F b) { return a / b; });
  check_f32<F>("rcp", "d, a", false, [](F a) { return 1 / a; });
  check_f32<F>("sqrt", "d, a", false, [](F a) { return std::sqrt(a); });
}

// As in expf(): the sum keeps few bits of the product, and the difference between the sum and the
// larger term is a float.
TEST(AluFloat, FmaWithALargeTerm) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  reference::Operands operands(37);
  for (const Rounding r : reference::kRoundings) {
    Alu fma(std::string("fma") + suffix(r) + ".f32 d, a, b, c");
    for (int batch = 0; batch < 6000; ++batch) {
      for (int l = 0; l < 32; ++l) {
        const float unit = static_cast<float>(operands.bits() >> 40) * 0x1p-24f;
        const float c = std::ldexp(1.0f + static_cast<float>(operands.bits() % 64) / 64,
                                   static_cast<int>(operands.bits() % 12) + 18);
        fma.set(1, l, operands.coin() ? unit : -unit), fma.set(2, l, 252.0f);
        fma.set(3, l, operands.coin() ? c : -c);
        if (batch % 8 == 1 && l % 4 == 0) fma.set(1, l, 0.0f);
        if (batch % 8 == 2) fma.set(3, l, -252.0f * unit);  // cancels
        if (batch % 8 == 3 && l == 7) fma.set(1, l, operands.next<float>());
        if (batch % 8 == 4 && l == 9) fma.set(1, l, 0x1p-149f);
      }
      fma.run();
      for (int l = 0; l < 32; ++l) {
        const auto source = [&](int i) { return std::bit_cast<float>(fma.r32(i).v[l]); };
        const float want = reference::in_mode(
            r, [](float x, float y, float z) { return std::fma(x, y, z); }, source(1), source(2),
            source(3));
        ASSERT_EQ(fma.r32(0).v[l], bits(canonical_nan(want)))
            << suffix(r) << std::hexfloat << " " << source(1) << " * " << source(2) << " + "
            << source(3);
      }
    }
  }
}

TEST(AluFloat, RoundsToNearestByDefault) {
  check("add.f32 d, a, b", [](float a, float b) { return canonical_nan(a + b); });
  check("sub.ftz.f32 d, a, b",
        [](float a, float b) { return canonical_nan(flushed(flushed(a) - flushed(b))); });
  check("mul.sat.f32 d, a, b", [](float a, float b) { return saturated(a * b); });
  check("add.f64 d, a, b", [](double a, double b) { return canonical_nan(a + b); });
  for (const char* text : {"fma.f32 d, a, b, c", "div.f32 d, a, b", "sqrt.f32 d, a", "rcp.f64 d, a",
                           "fma.f64 d, a, b, c"}) {
    expect_unsupported(text);
  }
}

TEST(AluFloat, SignsOfZeroSums) {
  const float zeros[] = {0.0f, -0.0f};
  for (const Rounding r : reference::kRoundings) {
    Alu add(std::string("add") + suffix(r) + ".f32 d, a, b");
    for (int l = 0; l < 32; ++l) {
      add.set(1, l, zeros[l & 1]), add.set(2, l, l < 16 ? zeros[l >> 1 & 1] : -zeros[l & 1]);
      if (l >= 24) add.set(1, l, 1.5f), add.set(2, l, -1.5f);
    }
    add.run();
    const std::uint32_t cancelled = r == Rounding::down ? 0x80000000u : 0;
    for (int l = 0; l < 32; ++l) {
      const std::uint32_t a = add.r32(1).v[l], b = add.r32(2).v[l];
      EXPECT_EQ(add.r32(0).v[l], a == b ? a : cancelled) << suffix(r) << std::hex << a << " " << b;
    }
  }
}

// f64: the simulator sets the host's rounding mode, so the reference computes in more digits
// instead.
template <class... A, class Op>
void check_f64(const std::string& opcode, const char* operands, Op op) {
  for (const Rounding rounding : reference::kRoundings) {
    check(opcode + suffix(rounding) + ".f64 " + operands, [=](A... a) {
      const double host = reference::in_mode(rounding, op, a...);
      if (!(std::isfinite(a) && ...)) return canonical_nan(host);
      const Quad exact = op(static_cast<Quad>(a)...);
      return std::bit_cast<double>(
          reference::round_to(reference::kF64, exact, std::signbit(host), rounding));
    });
  }
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
  double operator()(double a, double b, double c) const { return std::fma(a, b, c); }
  Quad operator()(Quad a, Quad b, Quad c) const { return reference::add(a * b, c); }
};

TEST(AluFloat, DoublePrecision) {
  using D = double;
  check_f64<D, D>("add", "d, a, b", Plus());
  check_f64<D, D>("sub", "d, a, b", Minus());
  check_f64<D, D>("mul", "d, a, b", Times());
  check_f64<D, D, D>("fma", "d, a, b, c", TimesPlus());
  check("mad.rn.f64 d, a, b, c", [](D a, D b, D c) { return canonical_nan(std::fma(a, b, c)); });
}

// A quotient or root is checked by multiplying back.
TEST(AluFloat, DoublePrecisionQuotientsAndRoots) {
  reference::Operands operands(11);
  for (const Rounding r : reference::kRoundings) {
    Alu div(std::string("div") + suffix(r) + ".f64 d, a, b");
    Alu rcp(std::string("rcp") + suffix(r) + ".f64 d, a");
    Alu root(std::string("sqrt") + suffix(r) + ".f64 d, a");
    const auto expect = [&](double got, auto compare) {
      // compare(x): the sign of x minus the exact result.
      const double below = std::nextafter(got, -INFINITY), above = std::nextafter(got, INFINITY);
      const int at = compare(got);
      if (at == 0) return;
      switch (r) {
        case Rounding::down: EXPECT_TRUE(at < 0 && compare(above) > 0); break;
        case Rounding::up: EXPECT_TRUE(at > 0 && compare(below) < 0); break;
        case Rounding::toward_zero:
          EXPECT_TRUE(got < 0 ? at > 0 && compare(below) < 0 : at < 0 && compare(above) > 0);
          break;
        default:
          EXPECT_LE(compare((static_cast<Quad>(got) + below) / 2), 0);
          EXPECT_GE(compare((static_cast<Quad>(got) + above) / 2), 0);
      }
    };
    const auto sign = [](Quad x) { return x < 0 ? -1 : x > 0 ? 1 : 0; };
    for (int batch = 0; batch < 300; ++batch) {
      for (int l = 0; l < 32; ++l) {
        const auto moderate = [&] {
          return std::ldexp(1 + static_cast<double>(operands.bits() >> 12) * 0x1p-52,
                            static_cast<int>(operands.bits() % 60) - 30);
        };
        const double a = operands.coin() ? moderate() : -moderate(), b = moderate();
        div.set(1, l, a), div.set(2, l, b), rcp.set(1, l, a), root.set(1, l, b);
      }
      div.run(), rcp.run(), root.run();
      for (int l = 0; l < 32; ++l) {
        const Quad a = std::bit_cast<double>(div.r64(1).v[l]);
        const Quad b = std::bit_cast<double>(div.r64(2).v[l]);
        expect(std::bit_cast<double>(div.r64(0).v[l]), [=](Quad x) { return sign(x * b - a); });
        expect(std::bit_cast<double>(rcp.r64(0).v[l]),
               [=](Quad x) { return sign(a < 0 ? 1 - x * a : x * a - 1); });
        expect(std::bit_cast<double>(root.r64(0).v[l]), [=](Quad x) { return sign(x * x - b); });
      }
    }
    // The host's rounding mode is restored.
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  }
  check("div.rn.f64 d, a, b", [](double a, double b) { return canonical_nan(a / b); });
  check("sqrt.rn.f64 d, a", [](double a) { return canonical_nan(std::sqrt(a)); });
  check("div.rz.f64 d, a, b", [](double a, double b) {
    return canonical_nan(reference::in_mode(
        Rounding::toward_zero, [](double x, double y) { return x / y; }, a, b));
  });
}

TEST(AluFloat, Signs) {
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  check("neg.f32 d, a", [](u32 a) { return a ^ 0x80000000u; });
  check("abs.f32 d, a", [](u32 a) { return a & 0x7fffffffu; });
  check("neg.ftz.f32 d, a", [](float a) { return -flushed(a); });
  check("abs.ftz.f32 d, a", [](float a) { return std::fabs(flushed(a)); });
  check("neg.f64 d, a", [](u64 a) { return a ^ u64 { 1 } << 63; });
  check("abs.f64 d, a", [](u64 a) { return a & ~(u64{1} << 63); });
  check("copysign.f32 d, a, b", [](float a, float b) { return std::copysign(b, a); });
  check("copysign.f64 d, a, b", [](double a, double b) { return std::copysign(b, a); });
}

template <class Real>
Real extreme_of(Real a, Real b, bool max, bool nan) {
  if (std::isnan(a) || std::isnan(b)) {
    if (nan || (std::isnan(a) && std::isnan(b)))
      return canonical_nan(std::numeric_limits<Real>::quiet_NaN());
    return std::isnan(a) ? b : a;
  }
  if (a == b) return std::signbit(a) != max ? a : b;  // of two zeros, the negative one is less
  return (a < b) != max ? a : b;
}

TEST(AluFloat, Extremes) {
  for (const bool max : {false, true}) {
    const std::string op = max ? "max" : "min";
    check(op + ".f64 d, a, b", [=](double a, double b) { return extreme_of(a, b, max, false); });
    for (const bool nan : {false, true}) {
      const std::string name = op + (nan ? ".NaN" : "");
      check(name + ".f32 d, a, b", [=](float a, float b) { return extreme_of(a, b, max, nan); });
      check(op + ".ftz" + (nan ? ".NaN" : "") + ".f32 d, a, b",
            [=](float a, float b) { return extreme_of(flushed(a), flushed(b), max, nan); });
      for (const bool ftz : {false, true}) {
        check(op + (ftz ? ".ftz" : "") + (nan ? ".NaN" : "") + ".xorsign.abs.f32 d, a, b",
              [=](float a, float b) {
                if (ftz) a = flushed(a), b = flushed(b);
                const float m = extreme_of(std::fabs(a), std::fabs(b), max, nan);
                const bool minus = std::signbit(a) != std::signbit(b);
                return std::isnan(m) ? m : minus ? -m : m;
              });
      }
    }
    expect_unsupported(op + ".f32 d, a, b, c");  // three inputs need compute capability 10
    expect_unsupported(op + ".xorsign.f32 d, a, b");
    expect_unsupported(op + ".NaN.f64 d, a, b");
  }
}

}  // namespace
}  // namespace assay::sim
