#include <functional>

#include "sim/operations/alu_fixture.h"

namespace assay::sim {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr u32 kNan = 0x7fffffff;

// The instruction's result for one operand.
u32 result(const std::string& text, float a) {
  Alu alu(text);
  for (int l = 0; l < 32; ++l) alu.set(1, l, a);
  alu.run();
  for (int l = 1; l < 32; ++l) EXPECT_EQ(alu.r32(0).v[l], alu.r32(0).v[0]);
  return alu.r32(0).v[0];
}
u32 bits(float x) { return std::bit_cast<u32>(x); }

// The tables of special cases in the PTX ISA.
TEST(AluSpecial, SpecialCases) {
  struct Row {
    const char* op;
    float in;
    u32 out;
  };
  const float tiny = 0x1p-149f;
  const Row rows[] = {
      {"ex2.approx", -kInf, 0},
      {"ex2.approx", -0.0f, bits(1)},
      {"ex2.approx", tiny, bits(1)},
      {"ex2.approx", kInf, bits(kInf)},
      {"ex2.approx", 128, bits(kInf)},
      {"ex2.approx", -150, 0},
      {"ex2.approx", -149, bits(tiny)},
      {"ex2.approx.ftz", -127, 0},
      {"ex2.approx", -126, bits(0x1p-126f)},
      {"ex2.approx.ftz", -126, bits(0x1p-126f)},
      {"lg2.approx", -kInf, kNan},
      {"lg2.approx", -1, kNan},
      {"lg2.approx", -0.0f, bits(-kInf)},
      {"lg2.approx", 0, bits(-kInf)},
      {"lg2.approx", 1, 0},
      {"lg2.approx", tiny, bits(-149)},
      {"lg2.approx.ftz", tiny, bits(-kInf)},
      {"lg2.approx.ftz", -tiny, bits(-kInf)},
      {"lg2.approx", kInf, bits(kInf)},
      {"lg2.approx", 0x1p100f, bits(100)},
      {"sin.approx", -kInf, kNan},
      {"sin.approx", kInf, kNan},
      {"sin.approx", -0.0f, bits(-0.0f)},
      {"sin.approx", 0, 0},
      {"sin.approx", tiny, bits(tiny)},
      {"sin.approx.ftz", -tiny, bits(-0.0f)},
      {"cos.approx", kInf, kNan},
      {"cos.approx", -kInf, kNan},
      {"cos.approx", 0, bits(1)},
      {"cos.approx", -0.0f, bits(1)},
      {"cos.approx", tiny, bits(1)},
      {"tanh.approx", -kInf, bits(-1)},
      {"tanh.approx", kInf, bits(1)},
      {"tanh.approx", -0.0f, bits(-0.0f)},
      {"tanh.approx", tiny, bits(tiny)},
      {"tanh.approx", 1000, bits(1)},
      {"rcp.approx", -kInf, bits(-0.0f)},
      {"rcp.approx", kInf, 0},
      {"rcp.approx", 0, bits(kInf)},
      {"rcp.approx", -0.0f, bits(-kInf)},
      {"rcp.approx.ftz", tiny, bits(kInf)},
      {"rcp.approx.ftz", -tiny, bits(-kInf)},
      {"rcp.approx.ftz", 0x1p127f, 0},
      {"rcp.approx", 0x1p127f, bits(0x1p-127f)},
      {"sqrt.approx", -1, kNan},
      {"sqrt.approx", -kInf, kNan},
      {"sqrt.approx", -0.0f, bits(-0.0f)},
      {"sqrt.approx", kInf, bits(kInf)},
      {"sqrt.approx.ftz", tiny, 0},
      {"sqrt.approx.ftz", -tiny, bits(-0.0f)},
      {"rsqrt.approx", -1, kNan},
      {"rsqrt.approx", 0, bits(kInf)},
      {"rsqrt.approx", -0.0f, bits(-kInf)},
      {"rsqrt.approx", kInf, 0},
      {"rsqrt.approx.ftz", tiny, bits(kInf)},
      {"rsqrt.approx.ftz", -tiny, bits(-kInf)},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(result(std::string(row.op) + ".f32 d, a", row.in), row.out)
        << row.op << " of " << row.in;
  }
  for (const char* op : {"ex2", "lg2", "sin", "cos", "tanh", "rcp", "sqrt", "rsqrt"}) {
    EXPECT_EQ(result(std::string(op) + ".approx.f32 d, a", -NAN), kNan) << op;
  }
}

// Every instruction compared with the C library on operands of all kinds, within a relative or an
// absolute error. The functions' own test is denser.
struct Bound {
  double relative, absolute;
};
void check_near(const std::string& op, std::function<double(double)> exact, Bound bound,
                double limit, bool ftz) {
  Alu alu(op + (ftz ? ".ftz" : "") + ".f32 d, a");
  reference::Operands operands(17);
  const auto flushed = [&](float x) {
    return ftz && std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
  };
  for (int batch = 0; batch < 3000; ++batch) {
    const u32 mask = batch % 2 == 0 ? ~0u : static_cast<u32>(operands.bits()) | 1;
    alu.activate(mask);
    for (int l = 0; l < 32; ++l) alu.set(1, l, operands.next<float>()), alu.set(0, l, 0x1234u + l);
    alu.run();
    for (int l = 0; l < 32; ++l) {
      if ((mask >> l & 1) == 0) {
        ASSERT_EQ(alu.r32(0).v[l], 0x1234u + l);
        continue;
      }
      const float a = flushed(std::bit_cast<float>(alu.r32(1).v[l]));
      const float got = std::bit_cast<float>(alu.r32(0).v[l]);
      if (std::fabs(a) > limit) continue;
      const double want = exact(a);
      if (std::isnan(want)) {
        ASSERT_EQ(alu.r32(0).v[l], kNan) << op << " of " << a;
      } else if (std::isinf(want) || std::fabs(want) >= 0x1.ffffffp127) {
        ASSERT_EQ(got, want > 0 ? kInf : -kInf) << op << " of " << a;
      } else {
        const double least = ftz ? 0x1p-126 : 0x1p-149;
        ASSERT_LE(std::fabs(got - want),
                  std::max({bound.relative * std::fabs(want), bound.absolute, least}))
            << op << " of " << std::hexfloat << a;
      }
    }
  }
}

TEST(AluSpecial, Errors) {
  for (const bool ftz : {false, true}) {
    check_near(
        "ex2.approx", [](double x) { return std::exp2(x); }, {0x1p-22, 0}, kInf, ftz);
    check_near(
        "lg2.approx", [](double x) { return std::log2(x); }, {0x1p-22, 0x1p-22}, kInf, ftz);
    check_near(
        "sin.approx", [](double x) { return std::sin(x); }, {0, std::exp2(-20.5)}, 6.28, ftz);
    check_near(
        "cos.approx", [](double x) { return std::cos(x); }, {0, std::exp2(-20.5)}, 6.28, ftz);
    check_near(
        "rcp.approx", [](double x) { return 1 / x; }, {0x1p-23, 0}, kInf, ftz);
    check_near(
        "sqrt.approx", [](double x) { return std::sqrt(x); }, {0x1p-23, 0}, kInf, ftz);
    check_near(
        "rsqrt.approx", [](double x) { return 1 / std::sqrt(x); }, {std::exp2(-22.9), 0}, kInf,
        ftz);
  }
  check_near(
      "tanh.approx", [](double x) { return std::tanh(x); }, {0x1p-11, 0}, kInf, false);
}

TEST(AluSpecial, Division) {
  const auto flushed = [](float x) {
    return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
  };
  const auto canonical_nan = [](float x) { return std::isnan(x) ? std::bit_cast<float>(kNan) : x; };
  check("div.full.f32 d, a, b", [=](float a, float b) { return canonical_nan(a / b); });
  check("div.full.ftz.f32 d, a, b",
        [=](float a, float b) { return canonical_nan(flushed(flushed(a) / flushed(b))); });
  // Beyond 2^126 the divisor's reciprocal is 0.
  const auto approx = [=](float a, float b) {
    if (std::fabs(b) > 0x1p126f) {
      const float zero = std::signbit(a) != std::signbit(b) ? -0.0f : 0.0f;
      return std::isnan(a) || std::isinf(a) ? std::bit_cast<float>(kNan) : zero;
    }
    return canonical_nan(a / b);
  };
  check("div.approx.f32 d, a, b", approx, 2000);
  check("div.approx.ftz.f32 d, a, b",
        [=](float a, float b) { return canonical_nan(flushed(approx(flushed(a), flushed(b)))); });
}

TEST(AluSpecial, UpperHalvesOfDoubles) {
  const auto upper = [](double x) {
    return std::bit_cast<double>(std::bit_cast<u64>(x) & ~u64{0xffffffff});
  };
  reference::Operands operands(19);
  for (const bool root : {false, true}) {
    Alu alu(root ? "rsqrt.approx.ftz.f64 d, a" : "rcp.approx.ftz.f64 d, a");
    for (int batch = 0; batch < 1000; ++batch) {
      for (int l = 0; l < 32; ++l) alu.set(1, l, operands.next<double>());
      alu.run();
      for (int l = 0; l < 32; ++l) {
        double a = upper(std::bit_cast<double>(alu.r64(1).v[l]));
        if (std::fabs(a) < 0x1p-1022) a = std::copysign(0.0, a);
        const double want = root ? 1 / std::sqrt(a) : 1 / a;
        const double got = std::bit_cast<double>(alu.r64(0).v[l]);
        ASSERT_EQ(alu.r64(0).v[l] & 0xffffffff, 0u);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(got));
        } else if (std::isinf(want)) {
          ASSERT_EQ(got, want);
        } else if (std::fabs(want) < 0x1p-1022) {
          ASSERT_EQ(got, 0) << a;
        } else {
          ASSERT_LE(std::fabs(got - want), std::fabs(want) * 0x1p-20) << a;
        }
      }
    }
  }
  check("rsqrt.approx.f64 d, a", [](double a) {
    const double x = 1 / std::sqrt(a);
    return std::isnan(x) ? std::bit_cast<double>(0xfff8000000000000u) : x;
  });
}

TEST(AluSpecial, Refused) {
  for (const char* text : {"ex2.f32 d, a", "tanh.approx.ftz.f32 d, a", "sin.approx.f64 d, a",
                           "rcp.approx.f64 d, a", "ex2.approx.sat.f32 d, a"}) {
    expect_unsupported(text);
  }
}

}  // namespace
}  // namespace assay::sim
