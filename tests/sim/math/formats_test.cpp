#include "sim/math/formats.h"

#include <gtest/gtest.h>

#include "sim/math/reference.h"
#include "sim/math/rounding.h"

namespace assay::sim {
namespace {

using reference::Quad;
using reference::value_of;

TEST(Formats, WidensEveryHalf) {
  for (std::uint32_t x = 0; x < 0x10000; ++x) {
    const double f16 = value_of(reference::kF16, x), bf16 = value_of(reference::kBf16, x);
    const float got = widen(Half{x});
    if (std::isnan(f16)) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got), kNan32);
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(float(f16)));
    }
    if (std::isnan(bf16)) {
      EXPECT_TRUE(std::isnan(widen(Bfloat{x})));
    } else {
      EXPECT_EQ(widen(Bfloat{x}), bf16);
    }
    // The round trip gives the same value.
    if (!std::isnan(f16)) {
      EXPECT_EQ(to_half<Half>(got).bits, x);
    }
    if (!std::isnan(bf16)) {
      EXPECT_EQ(to_half<Bfloat>(widen(Bfloat{x})).bits, x);
    }
  }
}

template <class From, class To, Rounding R>
void check_narrow(reference::Format from, reference::Format to) {
  reference::Operands operands(23);
  for (int i = 0; i < 10000; ++i) {
    std::uint64_t bits;
    if (from.bits == 64) {
      bits = std::bit_cast<std::uint64_t>(operands.next<double>());
      // Mostly values in the range of the narrow format, some of them ties.
      if (i % 4 != 0) {
        const double x = value_of(to, operands.bits() & ((std::uint64_t{1} << to.bits) - 1));
        bits = std::bit_cast<std::uint64_t>(x) + operands.bits() % 3 - 1 +
               (operands.coin() ? std::uint64_t{1} << (52 - to.precision) : 0);
      }
    } else {
      bits = std::bit_cast<std::uint32_t>(operands.next<float>());
    }
    using Word = typename From::Word;
    const double x = value_of(from, bits);
    ASSERT_EQ((narrow<From, To, R>(static_cast<Word>(bits))), reference::round_double(to, x, R))
        << std::hexfloat << x << " to " << to.precision << " bits, mode " << static_cast<int>(R);
  }
}
template <class From, class To>
void check_narrow(reference::Format from, reference::Format to) {
  check_narrow<From, To, Rounding::nearest_even>(from, to);
  check_narrow<From, To, Rounding::toward_zero>(from, to);
  check_narrow<From, To, Rounding::down>(from, to);
  check_narrow<From, To, Rounding::up>(from, to);
  check_narrow<From, To, Rounding::nearest_away>(from, to);
}

TEST(Formats, Narrows) {
  check_narrow<F32, F16>(reference::kF32, reference::kF16);
  check_narrow<F32, Bf16>(reference::kF32, reference::kBf16);
  check_narrow<F32, Tf32>(reference::kF32, reference::kTf32);
  check_narrow<F64, F16>(reference::kF64, reference::kF16);
  check_narrow<F64, Bf16>(reference::kF64, reference::kBf16);
  check_narrow<F64, F32>(reference::kF64, reference::kF32);
}

template <class To, Rounding R>
void check_integers(reference::Format to) {
  reference::Operands operands(29);
  for (int i = 0; i < 4000; ++i) {
    const auto x = operands.next<std::uint64_t>();
    const bool negative = operands.coin();
    const Quad exact = negative ? -static_cast<Quad>(x) : static_cast<Quad>(x);
    ASSERT_EQ((from_integer<To, R>(negative, x)), reference::round_to(to, exact, false, R)) << x;
  }
}
template <class To>
void check_integers(reference::Format to) {
  check_integers<To, Rounding::nearest_even>(to);
  check_integers<To, Rounding::toward_zero>(to);
  check_integers<To, Rounding::down>(to);
  check_integers<To, Rounding::up>(to);
}
TEST(Formats, RoundsIntegers) {
  check_integers<F16>(reference::kF16);
  check_integers<Bf16>(reference::kBf16);
  check_integers<F32>(reference::kF32);
  check_integers<F64>(reference::kF64);
}

TEST(Formats, Clamps) {
  EXPECT_EQ(saturate(-1.0f), 0.0f);
  EXPECT_FALSE(std::signbit(saturate(-0.0f)));
  EXPECT_EQ(saturate(NAN), 0.0f);
  EXPECT_EQ(saturate(0.25f), 0.25f);
  EXPECT_EQ(saturate(1e30f), 1.0f);
  EXPECT_TRUE(std::isnan(relu(NAN)));
  EXPECT_FALSE(std::signbit(relu(-0.0f)));
  EXPECT_EQ(relu(-3.0), 0.0);
  EXPECT_EQ(relu(3.0), 3.0);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(flush(-0x1p-127f)), 0x80000000u);
  EXPECT_EQ(flush(0x1p-126f), 0x1p-126f);
}

// fma_to_odd lets bf16's fma round only once: its result shows on which side of a tie the exact one
// lies.
TEST(Rounding, ToOdd) {
  reference::Operands operands(31);
  for (int i = 0; i < 40000; ++i) {
    const float a = operands.next<float>(), b = operands.next<float>(), c = operands.next<float>();
    const float odd = fma_to_odd(a, b, c);
    const auto mode = [&](Rounding r) {
      return reference::in_mode(
          r, [](float x, float y, float z) { return std::fma(x, y, z); }, a, b, c);
    };
    const float down = mode(Rounding::down), up = mode(Rounding::up);
    if (std::isnan(down)) {
      ASSERT_TRUE(std::isnan(odd));
    } else if (down == up) {
      ASSERT_EQ(odd, down);
    } else {
      ASSERT_TRUE(odd == down || odd == up);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(odd) & 1, 1u);
    }
  }
}

}  // namespace
}  // namespace assay::sim
