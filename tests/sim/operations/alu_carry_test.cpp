#include "sim/operations/alu_fixture.h"

namespace assay::sim {
namespace {

using u128 = unsigned __int128;
using s128 = __int128;

struct Flagged {
  std::uint64_t value;
  bool carry;
};

// Runs `name` with carry-in on full and partial masks and compares the value and the carry-out.
template <class T, class F>
void check_carry(const std::string& text, bool writes_carry, F reference) {
  SCOPED_TRACE(text);
  Alu alu(text);
  const std::size_t sources = alu.selection().operands.size() - 1;
  reference::Operands operands(3);
  for (int batch = 0; batch < 400; ++batch) {
    const std::uint32_t mask = batch % 2 == 0 ? ~0u : static_cast<std::uint32_t>(operands.bits());
    alu.activate(mask | 1);
    std::array<T, 3> values[32];
    std::array<bool, 32> in;
    for (int l = 0; l < 32; ++l) {
      for (std::size_t i = 0; i < 3; ++i) values[l][i] = operands.next<T>();
      for (std::size_t i = 0; i < sources; ++i) alu.set(1 + i, l, values[l][i]);
      alu.set(0, l, T{42});
      in[l] = operands.coin();
      alu.warp().carry.v[l] = in[l] ? 1 : 0;
    }
    alu.run();
    for (int l = 0; l < 32; ++l) {
      const bool active = ((mask | 1) >> l & 1) != 0;
      Flagged want = reference(values[l][0], values[l][1], values[l][2], in[l]);
      if (!active) want = {42, in[l]};
      if (!writes_carry) want.carry = in[l];
      ASSERT_EQ(alu.get<T>(0, l), to_lane<T>(static_cast<T>(want.value)));
      ASSERT_EQ(alu.warp().carry.v[l], want.carry ? 1u : 0u);
    }
  }
}

template <class T>
void check_type(const std::string& type) {
  using U = std::make_unsigned_t<T>;
  constexpr int kBits = sizeof(T) * 8;
  const auto sum = [](U a, U b, bool c) {
    const u128 exact = u128{a} + b + (c ? 1 : 0);
    return Flagged{static_cast<U>(exact), (exact >> kBits) != 0};
  };
  const auto difference = [](U a, U b, bool c) {
    const s128 exact = s128{a} - b - (c ? 1 : 0);
    return Flagged{static_cast<U>(exact), exact < 0};
  };
  const auto low = [](T a, T b) { return static_cast<U>(U(a) * u128(U(b))); };
  const auto high = [](T a, T b) {
    if (std::is_signed_v<T>) return static_cast<U>(s128{a} * b >> kBits);
    return static_cast<U>(u128(U(a)) * U(b) >> kBits);
  };
  check_carry<T>("add.cc." + type + " d, a, b", true,
                 [=](T a, T b, T, bool) { return sum(a, b, false); });
  check_carry<T>("addc." + type + " d, a, b", false,
                 [=](T a, T b, T, bool in) { return sum(a, b, in); });
  check_carry<T>("addc.cc." + type + " d, a, b", true,
                 [=](T a, T b, T, bool in) { return sum(a, b, in); });
  check_carry<T>("sub.cc." + type + " d, a, b", true,
                 [=](T a, T b, T, bool) { return difference(a, b, false); });
  check_carry<T>("subc." + type + " d, a, b", false,
                 [=](T a, T b, T, bool in) { return difference(a, b, in); });
  check_carry<T>("subc.cc." + type + " d, a, b", true,
                 [=](T a, T b, T, bool in) { return difference(a, b, in); });
  check_carry<T>("mad.lo.cc." + type + " d, a, b, c", true,
                 [=](T a, T b, T c, bool) { return sum(low(a, b), c, false); });
  check_carry<T>("mad.hi.cc." + type + " d, a, b, c", true,
                 [=](T a, T b, T c, bool) { return sum(high(a, b), c, false); });
  check_carry<T>("madc.lo." + type + " d, a, b, c", false,
                 [=](T a, T b, T c, bool in) { return sum(low(a, b), c, in); });
  check_carry<T>("madc.hi." + type + " d, a, b, c", false,
                 [=](T a, T b, T c, bool in) { return sum(high(a, b), c, in); });
  check_carry<T>("madc.lo.cc." + type + " d, a, b, c", true,
                 [=](T a, T b, T c, bool in) { return sum(low(a, b), c, in); });
  check_carry<T>("madc.hi.cc." + type + " d, a, b, c", true,
                 [=](T a, T b, T c, bool in) { return sum(high(a, b), c, in); });
}

TEST(AluCarry, Bits32) {
  check_type<std::uint32_t>("u32");
  check_type<std::int32_t>("s32");
}
TEST(AluCarry, Bits64) {
  check_type<std::uint64_t>("u64");
  check_type<std::int64_t>("s64");
}
TEST(AluCarry, OtherTypes) {
  expect_unsupported("add.cc.u16 d, a, b");
  expect_unsupported("addc.f32 d, a, b");
  expect_unsupported("madc.wide.u32 d, a, b, c");
}

}  // namespace
}  // namespace assay::sim
