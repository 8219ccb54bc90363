#include <functional>

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
void check_logic(const std::string& type) {
  check("and." + type + " d, a, b", [](T a, T b) { return static_cast<T>(a & b); });
  check("or." + type + " d, a, b", [](T a, T b) { return static_cast<T>(a | b); });
  check("xor." + type + " d, a, b", [](T a, T b) { return static_cast<T>(a ^ b); });
  check("not." + type + " d, a", [](T a) { return static_cast<T>(~a); });
  check("cnot." + type + " d, a", [](T a) { return static_cast<T>(a == 0); });
}

TEST(AluBits, Logic) {
  check_logic<u16>("b16");
  check_logic<u32>("b32");
  check_logic<u64>("b64");
}

TEST(AluBits, LogicOnPredicates) {
  check("and.pred d, a, b", [](bool a, bool b) { return a && b; });
  check("or.pred d, a, b", [](bool a, bool b) { return a || b; });
  check("xor.pred d, a, b", [](bool a, bool b) { return a != b; });
  check("not.pred d, a", [](bool a) { return !a; });
}

TEST(AluBits, Lop3) {
  for (int table = 0; table < 256; ++table) {
    check(
        "lop3.b32 d, a, b, c, " + std::to_string(table),
        [table](u32 a, u32 b, u32 c) {
          u32 out = 0;
          for (int i = 0; i < 32; ++i) {
            const u32 k = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
            out |= static_cast<u32>(table >> k & 1) << i;
          }
          return out;
        },
        4);
  }
  // By definition the table is the operation applied to 0xf0, 0xcc and 0xaa.
  check("lop3.b32 d, a, b, c, 0x1a", [](u32 a, u32 b, u32 c) { return ((a & b) | c) ^ a; });
}

// A shift, bit by bit.
template <class T>
T shift(T a, u32 n, bool left, bool fill_sign) {
  T out = a;
  for (u32 i = 0; i < std::min<u32>(n, 100); ++i) {
    using U = std::make_unsigned_t<T>;
    const bool sign = static_cast<U>(out) >> (sizeof(T) * 8 - 1) != 0;
    const U top = fill_sign && sign ? U(U{1} << (sizeof(T) * 8 - 1)) : U{0};
    out = static_cast<T>(left ? U(U(out) << 1) : U(U(out) >> 1 | top));
  }
  return out;
}
template <class T>
void check_shifts(const std::string& bits, const std::string& type) {
  check("shl." + bits + " d, a, b", [](T a, u32 b) { return shift(a, b, true, false); });
  check("shr." + type + " d, a, b",
        [](T a, u32 b) { return shift(a, b, false, std::is_signed_v<T>); });
}

TEST(AluBits, Shifts) {
  check_shifts<u16>("b16", "u16");
  check_shifts<s16>("b16", "s16");
  check_shifts<u32>("b32", "u32");
  check_shifts<s32>("b32", "s32");
  check_shifts<u64>("b64", "u64");
  check_shifts<s64>("b64", "s64");
  check_shifts<u32>("b32", "b32");
}

TEST(AluBits, FunnelShifts) {
  const auto left = [](u32 a, u32 b, u32 n) {
    return n == 0 ? b : n == 32 ? a : b << n | a >> (32 - n);
  };
  const auto right = [](u32 a, u32 b, u32 n) {
    return n == 0 ? a : n == 32 ? b : a >> n | b << (32 - n);
  };
  check("shf.l.clamp.b32 d, a, b, c",
        [=](u32 a, u32 b, u32 c) { return left(a, b, std::min<u32>(c, 32)); });
  check("shf.l.wrap.b32 d, a, b, c", [=](u32 a, u32 b, u32 c) { return left(a, b, c % 32); });
  check("shf.r.clamp.b32 d, a, b, c",
        [=](u32 a, u32 b, u32 c) { return right(a, b, std::min<u32>(c, 32)); });
  check("shf.r.wrap.b32 d, a, b, c", [=](u32 a, u32 b, u32 c) { return right(a, b, c % 32); });
}

template <class T>
void check_counts(const std::string& type) {
  constexpr int kBits = sizeof(T) * 8;
  check("popc." + type + " d, a", [](T a) {
    u32 n = 0;
    for (int i = 0; i < kBits; ++i) n += a >> i & 1;
    return n;
  });
  check("clz." + type + " d, a", [](T a) {
    u32 n = 0;
    for (int i = kBits - 1; i >= 0 && (a >> i & 1) == 0; --i) ++n;
    return n;
  });
  check("brev." + type + " d, a", [](T a) {
    T out = 0;
    for (int i = 0; i < kBits; ++i) out |= (a >> i & 1) << (kBits - 1 - i);
    return out;
  });
  check("bfi." + type + " f, a, b, c, d", [](T a, T b, u32 c, u32 d) {
    const u32 position = c & 255, length = d & 255;
    for (u32 i = 0; i < length && position + i < kBits; ++i) {
      const T bit = T{1} << (position + i);
      b = (b & ~bit) | ((a >> i & 1) != 0 ? bit : 0);
    }
    return b;
  });
}

TEST(AluBits, Counts) {
  check_counts<u32>("b32");
  check_counts<u64>("b64");
}

template <class T>
void check_fields(const std::string& type) {
  static constexpr int kTop = sizeof(T) * 8 - 1;
  const auto find = [](T a) {
    const bool sign = std::is_signed_v<T> && a < 0;
    for (int i = kTop; i >= 0; --i) {
      if (((a >> i & 1) != 0) != sign) return static_cast<u32>(i);
    }
    return ~u32{0};
  };
  check("bfind." + type + " d, a", find);
  check("bfind.shiftamt." + type + " d, a",
        [=](T a) { return find(a) == ~u32{0} ? ~u32{0} : kTop - find(a); });
  check(
      "bfe." + type + " d, a, b, c",
      [](T a, u32 b, u32 c) {
        const int position = b & 255, length = c & 255;
        const auto bit = [a](int i) { return (static_cast<u64>(a) >> i & 1) != 0; };
        const bool sign =
            std::is_signed_v<T> && length != 0 && bit(std::min(position + length - 1, kTop));
        u64 out = 0;
        for (int i = 0; i <= kTop; ++i) {
          const bool one = i < length && position + i <= kTop ? bit(position + i) : sign;
          out |= static_cast<u64>(one) << i;
        }
        return static_cast<T>(out);
      },
      2000);
}

TEST(AluBits, Fields) {
  check_fields<u32>("u32");
  check_fields<s32>("s32");
  check_fields<u64>("u64");
  check_fields<s64>("s64");
}

TEST(AluBits, FieldsOfEveryPositionAndLength) {
  Alu extract("bfe.s32 d, a, b, c");
  for (u32 position = 0; position < 70; ++position) {
    for (u32 length = 0; length < 70; ++length) {
      for (int l = 0; l < 32; ++l) {
        extract.set(1, l, u32{0x9a3c5e71} * (2 * l + 1));
        extract.set(2, l, position), extract.set(3, l, length);
      }
      extract.run();
      for (int l = 0; l < 32; ++l) {
        const u32 a = extract.r32(1).v[l];
        const int top = std::min<int>(position + length - 1, 31);
        const bool sign = length != 0 && (a >> top & 1) != 0;
        u32 want = 0;
        for (u32 i = 0; i < 32; ++i) {
          const bool one = i < length && position + i < 32 ? (a >> (position + i) & 1) != 0 : sign;
          want |= static_cast<u32>(one) << i;
        }
        ASSERT_EQ(extract.r32(0).v[l], want) << position << ", " << length;
      }
    }
  }
}

TEST(AluBits, Masks) {
  const auto mask = [](u32 a, u32 b) {  // bits [a, a + b)
    u32 out = 0;
    for (u64 i = a; i < std::min<u64>(u64{a} + b, 32); ++i) out |= 1u << i;
    return out;
  };
  check("bmsk.clamp.b32 d, a, b", mask);
  check("bmsk.wrap.b32 d, a, b", [=](u32 a, u32 b) { return mask(a & 31, b & 31); });
  const auto extend = [](u32 a, u32 n, bool sign) {
    if (n == 0) return u32{0};
    if (n >= 32) return a;
    const u32 ones = (1u << n) - 1;
    return sign && (a >> (n - 1) & 1) != 0 ? a | ~ones : a & ones;
  };
  check("szext.clamp.u32 d, a, b", [=](u32 a, u32 b) { return extend(a, b, false); });
  check("szext.clamp.s32 d, a, b", [=](u32 a, u32 b) { return extend(a, b, true); });
  check("szext.wrap.u32 d, a, b", [=](u32 a, u32 b) { return extend(a, b & 31, false); });
  check("szext.wrap.s32 d, a, b", [=](u32 a, u32 b) { return extend(a, b & 31, true); });
}

TEST(AluBits, FindNthSet) {
  check("fns.b32 d, a, b, c", [](u32 mask, u32 base, s32 offset) {
    if (base > 31) return ~u32{0};
    std::vector<u32> found;  // set bits from base on, in the direction of offset
    for (s64 i = base; i >= 0 && i < 32; i += offset >= 0 ? 1 : -1) {
      if ((mask >> i & 1) != 0) found.push_back(static_cast<u32>(i));
    }
    if (offset == 0) return (mask >> base & 1) != 0 ? base : ~u32{0};
    const s64 n = std::abs(s64{offset});
    return n <= static_cast<s64>(found.size()) ? found[n - 1] : ~u32{0};
  });
  Alu fns("fns.b32 d, a, b, c");  // the examples of the PTX ISA
  const u32 base[] = {3, 3, 2, 2}, offset[] = {1, ~0u, 1, ~0u}, want[] = {3, 3, 3, 1};
  for (int l = 0; l < 32; ++l) {
    fns.set(1, l, 0xaaaaaaaau), fns.set(2, l, base[l % 4]), fns.set(3, l, offset[l % 4]);
  }
  fns.run();
  for (int l = 0; l < 32; ++l) EXPECT_EQ(fns.r32(0).v[l], want[l % 4]);
}

TEST(AluBits, Permutations) {
  const auto byte = [](u32 a, u32 b, u32 i) {
    return (i < 4 ? a >> 8 * i : b >> 8 * (i - 4)) & 255;
  };
  check("prmt.b32 d, a, b, c", [=](u32 a, u32 b, u32 c) {
    u32 out = 0;
    for (int i = 0; i < 4; ++i) {
      const u32 selector = c >> 4 * i & 15, value = byte(a, b, selector & 7);
      out |= (selector < 8 ? value : value >= 128 ? 255 : 0) << 8 * i;
    }
    return out;
  });
  // The tables of the PTX ISA: the bytes of the result, most significant first.
  const auto mode = [=](std::array<std::array<u32, 4>, 4> table) {
    return [=](u32 a, u32 b, u32 c) {
      u32 out = 0;
      for (const u32 i : table[c & 3]) out = out << 8 | byte(a, b, i);
      return out;
    };
  };
  check("prmt.b32.f4e d, a, b, c",
        mode({{{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}}));
  check("prmt.b32.b4e d, a, b, c",
        mode({{{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}}));
  check("prmt.b32.rc8 d, a, b, c",
        mode({{{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}}));
  check("prmt.b32.ecl d, a, b, c",
        mode({{{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}}}));
  check("prmt.b32.ecr d, a, b, c",
        mode({{{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}}}));
  check("prmt.b32.rc16 d, a, b, c",
        mode({{{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}}}));
}

}  // namespace
}  // namespace assay::sim
