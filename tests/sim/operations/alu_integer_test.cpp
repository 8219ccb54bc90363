#include "sim/operations/alu_fixture.h"

namespace assay::sim {
namespace {

using u16 = std::uint16_t;
using s16 = std::int16_t;
using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;
using u128 = unsigned __int128;
using s128 = __int128;

template <class T>
const char* name();
template <>
const char* name<u16>() {
  return "u16";
}
template <>
const char* name<s16>() {
  return "s16";
}
template <>
const char* name<u32>() {
  return "u32";
}
template <>
const char* name<s32>() {
  return "s32";
}
template <>
const char* name<u64>() {
  return "u64";
}
template <>
const char* name<s64>() {
  return "s64";
}

// "mul.lo." -> "mul.lo.u16 d, a, b".
template <class T>
std::string with(const std::string& opcode, const char* operands) {
  return opcode + name<T>() + " " + operands;
}

s32 clamp32(s64 x) {
  return static_cast<s32>(std::min<s64>(std::max<s64>(x, -2147483648LL), 2147483647LL));
}

template <class T>
class IntegerTest : public testing::Test {};
using Types = testing::Types<u16, s16, u32, s32, u64, s64>;
TYPED_TEST_SUITE(IntegerTest, Types);

TYPED_TEST(IntegerTest, SumsAndProducts) {
  using T = TypeParam;
  check(with<T>("add.", "d, a, b"), [](T a, T b) { return static_cast<T>(s128{a} + b); });
  check(with<T>("sub.", "d, a, b"), [](T a, T b) { return static_cast<T>(s128{a} - b); });
  constexpr int kBits = sizeof(T) * 8;
  const auto product = [](T a, T b) {  // modulo 2^128, which keeps 2n bits
    return static_cast<u128>(static_cast<s128>(a)) * static_cast<u128>(static_cast<s128>(b));
  };
  check(with<T>("mul.lo.", "d, a, b"), [=](T a, T b) { return static_cast<T>(product(a, b)); });
  check(with<T>("mul.hi.", "d, a, b"),
        [=](T a, T b) { return static_cast<T>(product(a, b) >> kBits); });
  check(with<T>("mad.lo.", "d, a, b, c"),
        [=](T a, T b, T c) { return static_cast<T>(product(a, b) + static_cast<u128>(c)); });
  check(with<T>("mad.hi.", "d, a, b, c"), [=](T a, T b, T c) {
    return static_cast<T>((product(a, b) >> kBits) + static_cast<u128>(c));
  });
  check(with<T>("sad.", "d, a, b, c"), [](T a, T b, T c) {
    const s128 distance = a < b ? s128{b} - a : s128{a} - b;
    return static_cast<T>(c + distance);
  });
  check(with<T>("min.", "d, a, b"), [](T a, T b) { return std::min(a, b); });
  check(with<T>("max.", "d, a, b"), [](T a, T b) { return std::max(a, b); });
}

TYPED_TEST(IntegerTest, Quotients) {
  using T = TypeParam;
  // Division by zero gives all ones; the least value divided by -1 wraps.
  check(with<T>("div.", "d, a, b"),
        [](T a, T b) { return b == 0 ? static_cast<T>(-1) : static_cast<T>(s128{a} / b); });
  check(with<T>("rem.", "d, a, b"),
        [](T a, T b) { return b == 0 ? static_cast<T>(-1) : static_cast<T>(s128{a} % b); });
}

TYPED_TEST(IntegerTest, Signs) {
  using T = TypeParam;
  if constexpr (std::is_signed_v<T>) {
    check(with<T>("neg.", "d, a"), [](T a) { return static_cast<T>(-s128{a}); });
    check(with<T>("abs.", "d, a"), [](T a) { return static_cast<T>(a < 0 ? -s128{a} : s128{a}); });
  } else {
    expect_unsupported(with<T>("neg.", "d, a"));
    expect_unsupported(with<T>("abs.", "d, a"));
  }
}

// Quotients next to an integer, where division by way of double could go wrong.
TEST(AluInteger, DivisionNearMultiples) {
  Alu div("div.u32 d, a, b"), rem("rem.u32 d, a, b"), div_signed("div.s32 d, a, b");
  reference::Operands operands(7);
  for (int i = 0; i < 20000; ++i) {
    for (int l = 0; l < 32; ++l) {
      const u32 b = std::max<u32>(operands.next<u32>(), 1);
      const u32 a = b * (static_cast<u32>(operands.next<u32>() % (0xffffffffull / b + 1))) - l % 3;
      div.set(1, l, a), div.set(2, l, b);
      rem.set(1, l, a), rem.set(2, l, b);
      div_signed.set(1, l, a), div_signed.set(2, l, b);
    }
    div.run(), rem.run(), div_signed.run();
    for (int l = 0; l < 32; ++l) {
      const u32 a = div.r32(1).v[l], b = div.r32(2).v[l];
      ASSERT_EQ(div.r32(0).v[l], a / b) << a << " / " << b;
      ASSERT_EQ(rem.r32(0).v[l], a % b) << a << " % " << b;
      const auto want = static_cast<u32>(s64{static_cast<s32>(a)} / static_cast<s32>(b));
      ASSERT_EQ(div_signed.r32(0).v[l], want) << a << " / " << b;
    }
  }
}

TEST(AluInteger, WideProducts) {
  check("mul.wide.u16 d, a, b", [](u16 a, u16 b) { return u32{a} * b; });
  check("mul.wide.s16 d, a, b", [](s16 a, s16 b) { return s32{a} * b; });
  check("mul.wide.u32 d, a, b", [](u32 a, u32 b) { return u64{a} * b; });
  check("mul.wide.s32 d, a, b", [](s32 a, s32 b) { return s64{a} * b; });
  check("mad.wide.u16 d, a, b, c", [](u16 a, u16 b, u32 c) { return u32{a} * b + c; });
  check("mad.wide.s16 d, a, b, c",
        [](s16 a, s16 b, s32 c) { return static_cast<s32>(u32(s32{a} * b) + u32(c)); });
  check("mad.wide.u32 d, a, b, c", [](u32 a, u32 b, u64 c) { return u64{a} * b + c; });
  check("mad.wide.s32 d, a, b, c",
        [](s32 a, s32 b, s64 c) { return static_cast<s64>(u64(s64{a} * b) + u64(c)); });
}

TEST(AluInteger, Saturation) {
  check("add.sat.s32 d, a, b", [](s32 a, s32 b) { return clamp32(s64{a} + b); });
  check("sub.sat.s32 d, a, b", [](s32 a, s32 b) { return clamp32(s64{a} - b); });
  check("mad.hi.sat.s32 d, a, b, c",
        [](s32 a, s32 b, s32 c) { return clamp32((s64{a} * b >> 32) + c); });
}

TEST(AluInteger, Products24) {
  const auto s24 = [](s32 x) {
    x &= 0xffffff;
    return s64{x >= 0x800000 ? x - 0x1000000 : x};
  };
  const auto u24 = [](u32 x) { return u64{x & 0xffffff}; };
  check("mul24.lo.u32 d, a, b", [=](u32 a, u32 b) { return u32(u24(a) * u24(b)); });
  check("mul24.hi.u32 d, a, b", [=](u32 a, u32 b) { return u32(u24(a) * u24(b) >> 16); });
  check("mul24.lo.s32 d, a, b", [=](s32 a, s32 b) { return s32(s24(a) * s24(b)); });
  check("mul24.hi.s32 d, a, b", [=](s32 a, s32 b) { return s32(s24(a) * s24(b) >> 16); });
  check("mad24.lo.u32 d, a, b, c", [=](u32 a, u32 b, u32 c) { return u32(u24(a) * u24(b)) + c; });
  check("mad24.hi.u32 d, a, b, c",
        [=](u32 a, u32 b, u32 c) { return u32(u24(a) * u24(b) >> 16) + c; });
  check("mad24.lo.s32 d, a, b, c",
        [=](s32 a, s32 b, s32 c) { return s32(u32(s24(a) * s24(b)) + u32(c)); });
  check("mad24.hi.s32 d, a, b, c",
        [=](s32 a, s32 b, s32 c) { return s32(u32(s24(a) * s24(b) >> 16) + u32(c)); });
  check("mad24.hi.sat.s32 d, a, b, c",
        [=](s32 a, s32 b, s32 c) { return clamp32(s32(s24(a) * s24(b) >> 16) + s64{c}); });
}

// Applies f to the halves, as type T.
template <class T, class F>
auto by_halves(F f) {
  return [f](u32 a, u32 b) {
    const u32 low = static_cast<u16>(f(static_cast<T>(a), static_cast<T>(b)));
    const u32 high = static_cast<u16>(f(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return low | high << 16;
  };
}

TEST(AluInteger, Packed) {
  const auto add = [](int a, int b) { return a + b; };
  const auto min = [](int a, int b) { return std::min(a, b); };
  const auto max = [](int a, int b) { return std::max(a, b); };
  const auto relu_min = [](int a, int b) { return std::max(0, std::min(a, b)); };
  const auto relu_max = [](int a, int b) { return std::max(0, std::max(a, b)); };
  check("add.u16x2 d, a, b", by_halves<u16>(add));
  check("add.s16x2 d, a, b", by_halves<s16>(add));
  check("min.u16x2 d, a, b", by_halves<u16>(min));
  check("min.s16x2 d, a, b", by_halves<s16>(min));
  check("max.u16x2 d, a, b", by_halves<u16>(max));
  check("max.s16x2 d, a, b", by_halves<s16>(max));
  check("min.s16x2.relu d, a, b", by_halves<s16>(relu_min));
  check("max.relu.s16x2 d, a, b", by_halves<s16>(relu_max));
  check("min.relu.s32 d, a, b", [](s32 a, s32 b) { return std::max(0, std::min(a, b)); });
  check("max.relu.s32 d, a, b", [](s32 a, s32 b) { return std::max(0, std::max(a, b)); });
}

template <class A, class B>
s64 dot(u32 a, u32 b, int terms, int a_bits, int first) {
  s64 sum = 0;
  for (int i = 0; i < terms; ++i) {
    sum += s64{static_cast<A>(a >> i * a_bits)} * static_cast<B>(b >> (first + i) * 8);
  }
  return sum;
}

TEST(AluInteger, DotProducts) {
  using u8 = std::uint8_t;
  using s8 = std::int8_t;
  check("dp4a.u32.u32 d, a, b, c",
        [](u32 a, u32 b, u32 c) { return u32(c + dot<u8, u8>(a, b, 4, 8, 0)); });
  check("dp4a.s32.s32 d, a, b, c",
        [](u32 a, u32 b, u32 c) { return u32(c + dot<s8, s8>(a, b, 4, 8, 0)); });
  check("dp4a.u32.s32 d, a, b, c",
        [](u32 a, u32 b, u32 c) { return u32(c + dot<u8, s8>(a, b, 4, 8, 0)); });
  check("dp4a.s32.u32 d, a, b, c",
        [](u32 a, u32 b, u32 c) { return u32(c + dot<s8, u8>(a, b, 4, 8, 0)); });
  check("dp2a.lo.u32.u32 d, a, b, c",
        [](u32 a, u32 b, u32 c) { return u32(c + dot<u16, u8>(a, b, 2, 16, 0)); });
  check("dp2a.hi.s32.s32 d, a, b, c",
        [](u32 a, u32 b, u32 c) { return u32(c + dot<s16, s8>(a, b, 2, 16, 2)); });
  check("dp2a.hi.u32.s32 d, a, b, c",
        [](u32 a, u32 b, u32 c) { return u32(c + dot<u16, s8>(a, b, 2, 16, 2)); });
  check("dp2a.lo.s32.u32 d, a, b, c",
        [](u32 a, u32 b, u32 c) { return u32(c + dot<s16, u8>(a, b, 2, 16, 0)); });
}

// |a - b| of each element, in its place.
template <class A, class B>
u32 differences(u32 a, u32 b) {
  constexpr int kBits = 8 * sizeof(A);
  u32 merged = 0;
  for (int at = 0; at < 32; at += kBits) {
    const s64 d = std::abs(s64{static_cast<A>(a >> at)} - static_cast<B>(b >> at));
    merged |= (static_cast<u32>(d) & ((1u << kBits) - 1)) << at;
  }
  return merged;
}

template <class A, class B>
u32 sum_of_differences(u32 a, u32 b) {
  s64 sum = 0;
  for (int at = 0; at < 32; at += 8 * static_cast<int>(sizeof(A)))
    sum += std::abs(s64{static_cast<A>(a >> at)} - static_cast<B>(b >> at));
  return static_cast<u32>(sum);
}

TEST(AluInteger, AbsoluteDifferencesOfElements) {
  using u8 = std::uint8_t;
  using s8 = std::int8_t;
  check("vabsdiff4.u32.u32.u32 d, a, b, c",
        [](u32 a, u32 b, u32) { return differences<u8, u8>(a, b); });
  check("vabsdiff4.s32.s32.u32 d, a, b, c",
        [](u32 a, u32 b, u32) { return differences<s8, u8>(a, b); });
  check("vabsdiff2.u32.s32.s32 d, a, b, c",
        [](u32 a, u32 b, u32) { return differences<s16, s16>(a, b); });
  check("vabsdiff4.u32.u32.u32.add d, a, b, c",
        [](u32 a, u32 b, u32 c) { return c + sum_of_differences<u8, u8>(a, b); });
  check("vabsdiff4.u32.s32.s32.add d, a, b, c",
        [](u32 a, u32 b, u32 c) { return c + sum_of_differences<s8, s8>(a, b); });
  check("vabsdiff2.u32.u32.u32.add d, a, b, c",
        [](u32 a, u32 b, u32 c) { return c + sum_of_differences<u16, u16>(a, b); });
}

// A result may take the slot of a source that is no longer needed, or part of it if one is wider
// than the other.
TEST(AluInteger, ResultInTheSlotOfASource) {
  for (const std::uint32_t offset : {0, 128}) {
    Alu wide("mul.wide.s32 d, a, b");
    std::array<s64, 32> want;
    for (int l = 0; l < 32; ++l) {
      wide.set(1, l, s32{l - 7}), wide.set(2, l, s32{1 << 30});
      want[l] = s64{l - 7} << 30;
    }
    ASSERT_EQ(wide.instr().a % 256, 0u);
    wide.alias(-offset);  // the source is the lower or the upper half of the result
    wide.run();
    for (int l = 0; l < 32; ++l) {
      ASSERT_EQ(static_cast<s64>(wide.warp().r64(wide.destination()).v[l]), want[l]);
    }
    Alu narrow("clz.b64 d, a");
    for (int l = 0; l < 32; ++l) narrow.set(1, l, u64{1} << l);
    narrow.alias(offset);
    narrow.run();
    for (int l = 0; l < 32; ++l) {
      ASSERT_EQ(narrow.warp().r32(narrow.destination()).v[l], 63u - l);
    }
  }
}

}  // namespace
}  // namespace assay::sim
