// The errors of the approximate functions on a dense set of arguments, compared with the C library
// in double.
#include "sim/math/approx.h"

#include <gtest/gtest.h>

namespace assay::sim {
namespace {

struct Errors {
  double relative = 0, absolute = 0;
};

// The errors over every `stride`-th float between two positive values, and over their negatives.
template <class F, class Exact>
Errors measure(float from, float to, std::uint32_t stride, F f, Exact exact, bool negative = true) {
  Errors worst;
  const auto last = std::bit_cast<std::uint32_t>(to);
  for (std::uint64_t b = std::bit_cast<std::uint32_t>(from); b <= last; b += stride) {
    for (const float x : {std::bit_cast<float>(static_cast<std::uint32_t>(b)),
                          -std::bit_cast<float>(static_cast<std::uint32_t>(b))}) {
      if (x < 0 && !negative) continue;
      const double want = exact(static_cast<double>(x)), error = std::fabs(f(x) - want);
      worst.absolute = std::max(worst.absolute, error);
      if (want != 0) worst.relative = std::max(worst.relative, error / std::fabs(want));
    }
  }
  return worst;
}

TEST(Approx, Ex2) {
  const auto exact = [](double x) { return std::exp2(x); };
  const Errors e = measure(0x1p-30f, 125.99f, 251, approx::ex2, exact);
  EXPECT_LE(std::log2(e.relative), -23.0);
  // Subnormal results are off by at most one unit.
  const auto small = [](float x) { return approx::ex2(-x); };
  const Errors s = measure(
      126.0f, 150.5f, 3, small, [](double x) { return std::exp2(-x); }, false);
  EXPECT_LE(s.absolute, 0x1p-149);
  for (int n = -149; n < 128; ++n) EXPECT_EQ(approx::ex2(n), std::ldexp(1.0f, n));
}

TEST(Approx, Lg2) {
  const auto exact = [](double x) { return std::log2(x); };
  const Errors near = measure(0.5f, 2.0f, 1, approx::lg2, exact, false);
  EXPECT_LE(std::log2(near.absolute), -22.5);
  const Errors below = measure(0x1p-149f, 0.5f, 509, approx::lg2, exact, false);
  EXPECT_LE(std::log2(below.relative), -22.5);
  const Errors above = measure(2.0f, 0x1.fffffep127f, 509, approx::lg2, exact, false);
  EXPECT_LE(std::log2(above.relative), -22.5);
  for (int n = -149; n < 128; ++n) EXPECT_EQ(approx::lg2(std::ldexp(1.0f, n)), n);
}

TEST(Approx, Sine) {
  const auto sin = [](double x) { return std::sin(x); };
  const auto cos = [](double x) { return std::cos(x); };
  for (const auto& [from, to, stride] :
       {std::tuple{0x1p-126f, 0.1f, 1009u}, std::tuple{0.1f, 6.2831854f, 61u},
        std::tuple{6.2831854f, 0x1p20f, 211u}}) {
    const Errors s = measure(from, to, stride, approx::sin, sin);
    const Errors c = measure(from, to, stride, approx::cos, cos);
    EXPECT_LE(std::log2(s.absolute), -23.0) << from;
    EXPECT_LE(std::log2(c.absolute), -23.0) << from;
  }
  // For small arguments the relative error is small too.
  EXPECT_LE(std::log2(measure(0x1p-126f, 0.5f, 1009, approx::sin, sin).relative), -22.5);
  // However large the argument.
  for (float x = 0x1p20f; x < 0x1p127f; x *= 1.7f) {
    EXPECT_LE(std::fabs(approx::sin(x)), 1.0f) << x;
    EXPECT_LE(std::fabs(approx::cos(x)), 1.0f) << x;
  }
}

TEST(Approx, Tanh) {
  const auto exact = [](double x) { return std::tanh(x); };
  EXPECT_LE(std::log2(measure(0x1p-126f, 0.01f, 1009, approx::tanh, exact).relative), -22.0);
  EXPECT_LE(std::log2(measure(0.01f, 20.0f, 61, approx::tanh, exact).relative), -22.0);
  EXPECT_LE(std::log2(measure(20.0f, 0x1.fffffep127f, 10007, approx::tanh, exact).relative), -22.0);
}

TEST(Approx, Roots) {
  const auto rsqrt = [](double x) { return 1 / std::sqrt(x); };
  EXPECT_LE(measure(1.0f, 4.0f, 3, approx::rsqrt, rsqrt, false).relative, 0x1p-23);
  EXPECT_LE(measure(0x1p-149f, 0x1.fffffep127f, 1009, approx::rsqrt, rsqrt, false).relative,
            0x1p-23);
}

}  // namespace
}  // namespace assay::sim
