#include "sim/operations/alu_fixture.h"

namespace assay::sim {
namespace {

using u16 = std::uint16_t;
using s16 = std::int16_t;
using u32 = std::uint32_t;
using s32 = std::int32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;

template <class T>
double value(T x) {
  if constexpr (std::is_same_v<T, Half>) return reference::value_of(reference::kF16, x.bits);
  if constexpr (std::is_same_v<T, Bfloat>) return reference::value_of(reference::kBf16, x.bits);
  if constexpr (std::is_floating_point_v<T>) return x;
}

// Three-way comparison: -1, 0, 1, or 2 if unordered.
template <class T>
int order(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b ? -1 : a > b ? 1 : 0;
  } else {
    const double x = value(a), y = value(b);
    return std::isnan(x) || std::isnan(y) ? 2 : x < y ? -1 : x > y ? 1 : 0;
  }
}

struct Case {
  const char* name;
  bool less, equal, greater, unordered;
};
constexpr Case kOrdered[] = {
    {"eq", false, true, false, false}, {"ne", true, false, true, false},
    {"lt", true, false, false, false}, {"le", true, true, false, false},
    {"gt", false, false, true, false}, {"ge", false, true, true, false},
};
constexpr Case kUnordered[] = {
    {"equ", false, true, false, true}, {"neu", true, false, true, true},
    {"ltu", true, false, false, true}, {"leu", true, true, false, true},
    {"gtu", false, false, true, true}, {"geu", false, true, true, true},
    {"num", true, true, true, false},  {"nan", false, false, false, true},
};
constexpr Case kUnsigned[] = {
    {"lo", true, false, false, false},
    {"ls", true, true, false, false},
    {"hi", false, false, true, false},
    {"hs", false, true, true, false},
};

bool holds(const Case& c, int order) {
  return order == 2 ? c.unordered : order < 0 ? c.less : order > 0 ? c.greater : c.equal;
}

// Checks setp in all its forms, and set, for one comparison.
template <class T>
void check_comparison(const Case& c, const std::string& type, const std::string& ftz = "") {
  const std::string head = std::string("setp.") + c.name, tail = ftz + "." + type;
  const auto is = [c](T a, T b) { return holds(c, order(a, b)); };
  check(head + tail + " p, a, b", is, 100);
  check(
      head + ".and" + tail + " p, a, b, c", [=](T a, T b, bool p) { return is(a, b) && p; }, 50);
  check(
      head + ".or" + tail + " p, a, b, c", [=](T a, T b, bool p) { return is(a, b) || p; }, 50);
  check(
      head + ".xor" + tail + " p, a, b, !c", [=](T a, T b, bool p) { return is(a, b) != p; }, 50);

  // Also check the second destination.
  Alu two(head + ".and" + tail + " p|q, a, b, c");
  reference::Operands operands(5);
  for (int batch = 0; batch < 20; ++batch) {
    const u32 mask = static_cast<u32>(operands.bits()) | 1;
    two.activate(mask);
    two.pred(0) = 0x0f0f0f0f, two.pred(1) = 0x00ff00ff, two.pred(4) = u32(operands.bits());
    std::array<bool, 32> first, second;
    for (int l = 0; l < 32; ++l) {
      const T a = operands.next<T>(), b = operands.next<T>();
      two.set(2, l, a), two.set(3, l, b);
      const bool active = (mask >> l & 1) != 0, p = (two.pred(4) >> l & 1) != 0;
      first[l] = active ? is(a, b) && p : (0x0f0f0f0f >> l & 1) != 0;
      second[l] = active ? !is(a, b) && p : (0x00ff00ff >> l & 1) != 0;
    }
    two.run();
    for (int l = 0; l < 32; ++l) {
      ASSERT_EQ((two.pred(0) >> l & 1) != 0, first[l]) << head << tail;
      ASSERT_EQ((two.pred(1) >> l & 1) != 0, second[l]) << head << tail;
    }
  }

  const std::string set = std::string("set.") + c.name;
  check(
      set + ftz + ".u32." + type + " d, a, b", [=](T a, T b) { return is(a, b) ? ~0u : 0u; }, 50);
  check(
      set + ".or" + ftz + ".f32." + type + " d, a, b, c",
      [=](T a, T b, bool p) { return is(a, b) || p ? 0x3f800000u : 0u; }, 50);
}

template <class T>
void check_integers(const std::string& type) {
  for (const Case& c : kOrdered) check_comparison<T>(c, type);
  if (std::is_unsigned_v<T>) {
    for (const Case& c : kUnsigned) check_comparison<T>(c, type);
  } else {
    expect_unsupported("setp.lo." + type + " p, a, b");
  }
  expect_unsupported("setp.ltu." + type + " p, a, b");
}
template <class T>
void check_floats(const std::string& type) {
  for (const Case& c : kOrdered) check_comparison<T>(c, type);
  for (const Case& c : kUnordered) check_comparison<T>(c, type);
}

TEST(AluCompare, Integers) {
  check_integers<u16>("u16");
  check_integers<s16>("s16");
  check_integers<u32>("u32");
  check_integers<s32>("s32");
  check_integers<u64>("u64");
  check_integers<s64>("s64");
}

TEST(AluCompare, Bits) {
  check_comparison<u16>(kOrdered[0], "b16");
  check_comparison<u32>(kOrdered[1], "b32");
  check_comparison<u64>(kOrdered[1], "b64");
  expect_unsupported("setp.lt.b32 p, a, b");
}

TEST(AluCompare, Floats) {
  check_floats<float>("f32");
  check_floats<double>("f64");
  check_floats<Half>("f16");
  check_floats<Bfloat>("bf16");
}

// Subnormals become zeros of the same sign.
TEST(AluCompare, Flushed) {
  const auto flushed = [](float x) { return std::fabs(x) < 0x1p-126f ? 0.0f : x; };
  for (const Case& c : kOrdered) {
    check(std::string("setp.") + c.name + ".ftz.f32 p, a, b",
          [=](float a, float b) { return holds(c, order(flushed(a), flushed(b))); });
    check(std::string("setp.") + c.name + ".ftz.f16 p, a, b", [=](Half a, Half b) {
      const auto zero = [](Half h) { return (h.bits & 0x7c00) == 0 ? 0.0 : value(h); };
      return holds(c, order(zero(a), zero(b)));
    });
  }
  for (const Case& c : kUnordered) {
    check(std::string("set.") + c.name + ".ftz.s32.f32 d, a, b",
          [=](float a, float b) { return holds(c, order(flushed(a), flushed(b))) ? -1 : 0; });
  }
  expect_unsupported("setp.lt.ftz.f64 p, a, b");
  expect_unsupported("setp.lt.ftz.bf16 p, a, b");
}

template <class T>
void check_packed(const std::string& type) {
  for (const Case* table : {&kOrdered[2], &kOrdered[1], &kUnordered[1], &kUnordered[7]}) {
    const Case& c = *table;
    Alu setp(std::string("setp.") + c.name + ".or." + type + " p|q, a, b, c");
    Alu set(std::string("set.") + c.name + "." + type + "." + type + " d, a, b");
    Alu set_integer(std::string("set.") + c.name + ".u32." + type + " d, a, b");
    reference::Operands operands(6);
    const u32 one = type == "f16x2" ? 0x3c00 : 0x3f80;
    for (int batch = 0; batch < 100; ++batch) {
      setp.pred(4) = u32(operands.bits());
      std::array<std::array<bool, 2>, 32> want;
      for (int l = 0; l < 32; ++l) {
        const T a[2] = {operands.next<T>(), operands.next<T>()};
        const T b[2] = {operands.next<T>(), operands.next<T>()};
        for (int i : {0, 1}) want[l][i] = holds(c, order(a[i], b[i]));
        const u32 x = a[0].bits | a[1].bits << 16, y = b[0].bits | b[1].bits << 16;
        setp.set(2, l, x), setp.set(3, l, y);
        set.set(1, l, x), set.set(2, l, y);
        set_integer.set(1, l, x), set_integer.set(2, l, y);
      }
      setp.run(), set.run(), set_integer.run();
      for (int l = 0; l < 32; ++l) {
        const bool p = (setp.pred(4) >> l & 1) != 0;
        ASSERT_EQ((setp.pred(0) >> l & 1) != 0, want[l][0] || p) << setp.text();
        ASSERT_EQ((setp.pred(1) >> l & 1) != 0, want[l][1] || p) << setp.text();
        const u32 low = want[l][0] ? one : 0, high = want[l][1] ? one << 16 : 0;
        ASSERT_EQ(set.r32(0).v[l], low | high)
            << set.text() << std::hex << " of 0x" << set.r32(1).v[l] << ", 0x" << set.r32(2).v[l];
        ASSERT_EQ(set_integer.r32(0).v[l],
                  (want[l][0] ? 0xffffu : 0) | (want[l][1] ? 0xffff0000u : 0));
      }
    }
  }
}
TEST(AluCompare, Packed) {
  check_packed<Half>("f16x2");
  check_packed<Bfloat>("bf16x2");
}

TEST(AluCompare, ResultsOfSet) {
  check("set.lt.f16.f16 d, a, b",
        [](Half a, Half b) { return Half{value(a) < value(b) ? 0x3c00u : 0}; });
  check("set.lt.bf16.bf16 d, a, b",
        [](Bfloat a, Bfloat b) { return Bfloat{value(a) < value(b) ? 0x3f80u : 0}; });
  check("set.gt.u16.f16 d, a, b",
        [](Half a, Half b) { return static_cast<u16>(value(a) > value(b) ? 0xffff : 0); });
  check("set.gt.f16.s32 d, a, b", [](s32 a, s32 b) { return Half{a > b ? 0x3c00u : 0}; });
  expect_unsupported("set.lt.u16.u32 d, a, b");
  expect_unsupported("set.lt.f64.f64 d, a, b");
}

template <class T, class Classify>
void check_properties(const std::string& type, Classify classify) {
  const auto is = [=](auto... kinds) {
    return [=](T a) {
      const int kind = classify(a);
      return ((kind == kinds) || ...);
    };
  };
  check("testp.finite." + type + " p, a", is(FP_ZERO, FP_NORMAL, FP_SUBNORMAL));
  check("testp.infinite." + type + " p, a", is(FP_INFINITE));
  check("testp.number." + type + " p, a", is(FP_ZERO, FP_NORMAL, FP_SUBNORMAL, FP_INFINITE));
  check("testp.notanumber." + type + " p, a", is(FP_NAN));
  check("testp.normal." + type + " p, a", is(FP_ZERO, FP_NORMAL));
  check("testp.subnormal." + type + " p, a", is(FP_SUBNORMAL));
}
TEST(AluCompare, Properties) {
  check_properties<float>("f32", [](float x) { return std::fpclassify(x); });
  check_properties<double>("f64", [](double x) { return std::fpclassify(x); });
  expect_unsupported("testp.finite.f16 p, a");
}

template <class T>
void check_selection(const std::string& type) {
  check("selp." + type + " d, a, b, p", [](T a, T b, bool p) { return p ? a : b; });
  check("slct." + type + ".s32 d, a, b, c", [](T a, T b, s32 c) { return c >= 0 ? a : b; });
  check("slct." + type + ".f32 d, a, b, c", [](T a, T b, float c) { return c >= 0 ? a : b; });
  check("slct.ftz." + type + ".f32 d, a, b, c",
        [](T a, T b, float c) { return c > -0x1p-126f ? a : b; });
}
TEST(AluChoice, Selections) {
  for (const char* type : {"b16", "u16", "s16"}) check_selection<u16>(type);
  for (const char* type : {"b32", "u32", "s32", "f32"}) check_selection<u32>(type);
  for (const char* type : {"b64", "u64", "s64", "f64"}) check_selection<u64>(type);
  expect_unsupported("selp.pred d, a, b, p");
}

}  // namespace
}  // namespace assay::sim
