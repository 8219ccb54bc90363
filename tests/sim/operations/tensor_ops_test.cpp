#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sim/math/formats.h"
#include "sim/operations/fake_warp.h"

namespace assay::sim {
namespace {

using fake::Failed;
using fake::fake_memory;
using fake::FakeWarp;
using fake::instruction;
using fake::Recorded;
using fake::select_for_test;

// "{%r4, %r5}"
std::string list(const std::string& prefix, int first, int count) {
  std::string text = "{";
  for (int r = 0; r < count; ++r) text += (r == 0 ? "" : ", ") + prefix + std::to_string(first + r);
  return text + "}";
}

template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string text;
  ((text += parts), ...);
  return text;
}

// Stores an element as its type lies in memory.
void store_element(const std::string& type, std::byte* to, double value) {
  const auto put = [&](auto bits) { std::memcpy(to, &bits, sizeof bits); };
  if (type == "f16") put(static_cast<std::uint16_t>(to_half<Half>(value).bits));
  if (type == "bf16") put(static_cast<std::uint16_t>(to_half<Bfloat>(value).bits));
  if (type == "tf32" || type == "f32") put(static_cast<float>(value));
  if (type == "f64") put(value);
  if (type == "s8" || type == "u8") put(static_cast<std::uint8_t>(static_cast<int>(value)));
  if (type == "s32") put(static_cast<std::int32_t>(value));
}

double load_element(const std::string& type, const std::byte* from) {
  const auto get = [&](auto value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  if (type == "f16") return widen(Half{get(std::uint16_t{})});
  if (type == "bf16") return widen(Bfloat{get(std::uint16_t{})});
  if (type == "tf32" || type == "f32") return get(float{});
  if (type == "f64") return get(double{});
  if (type == "s8") return get(std::int8_t{});
  if (type == "u8") return get(std::uint8_t{});
  return get(std::int32_t{});
}

int bytes_of(const std::string& type) {
  static const std::map<std::string, int> bytes{{"f16", 2}, {"bf16", 2}, {"tf32", 4}, {"f32", 4},
                                                {"f64", 8}, {"s8", 1},   {"u8", 1},   {"s32", 4}};
  return bytes.at(type);
}

// A matrix in the fake memory.
struct InMemory {
  std::string type;
  int rows = 0, cols = 0;
  bool column_major = false;
  int stride = 0;        // elements
  std::uint64_t at = 0;  // offset

  std::byte* element(int r, int c) const {
    const int place = column_major ? c * stride + r : r * stride + c;
    return fake_memory().bytes.data() + at + static_cast<std::size_t>(place * bytes_of(type));
  }
  double get(int r, int c) const { return load_element(type, element(r, c)); }
  void set(int r, int c, double v) const { store_element(type, element(r, c), v); }
};

InMemory matrix(const std::string& type, int rows, int cols, bool column_major, std::uint64_t at) {
  const int line = column_major ? rows : cols;
  return {type, rows, cols, column_major, line + 16 / std::min(16, bytes_of(type)) * 2, at};
}

void fill_random(const InMemory& m, std::mt19937& random) {
  const int low = m.type == "u8" ? 0 : -100, high = m.type == "u8" ? 255 : 100;
  for (int r = 0; r < m.rows; ++r) {
    for (int c = 0; c < m.cols; ++c) {
      m.set(r, c, std::uniform_int_distribution<int>(low, high)(random));
    }
  }
}

// wmma.

struct Wmma {
  std::string shape;
  int m, n, k;
  std::string multiplicand, accumulator_c, accumulator_d;
  std::string types;  // of wmma.mma
  int registers_a, registers_b, registers_c, registers_d;
};

const Wmma kWmma[] = {
    {"m16n16k16", 16, 16, 16, "f16", "f32", "f32", "f32.f32", 8, 8, 8, 8},
    {"m16n16k16", 16, 16, 16, "f16", "f16", "f16", "f16.f16", 8, 8, 4, 4},
    {"m16n16k16", 16, 16, 16, "f16", "f16", "f32", "f32.f16", 8, 8, 4, 8},
    {"m16n16k16", 16, 16, 16, "f16", "f32", "f16", "f16.f32", 8, 8, 8, 4},
    {"m32n8k16", 32, 8, 16, "f16", "f32", "f32", "f32.f32", 8, 8, 8, 8},
    {"m32n8k16", 32, 8, 16, "f16", "f16", "f16", "f16.f16", 8, 8, 4, 4},
    {"m8n32k16", 8, 32, 16, "f16", "f32", "f32", "f32.f32", 8, 8, 8, 8},
    {"m8n32k16", 8, 32, 16, "f16", "f16", "f16", "f16.f16", 8, 8, 4, 4},
    {"m16n16k16", 16, 16, 16, "bf16", "f32", "f32", "f32.bf16.bf16.f32", 4, 4, 8, 8},
    {"m32n8k16", 32, 8, 16, "bf16", "f32", "f32", "f32.bf16.bf16.f32", 8, 2, 8, 8},
    {"m8n32k16", 8, 32, 16, "bf16", "f32", "f32", "f32.bf16.bf16.f32", 2, 8, 8, 8},
    {"m16n16k16", 16, 16, 16, "s8", "s32", "s32", "s32.s8.s8.s32", 2, 2, 8, 8},
    {"m32n8k16", 32, 8, 16, "s8", "s32", "s32", "s32.s8.s8.s32.satfinite", 4, 1, 8, 8},
    {"m8n32k16", 8, 32, 16, "s8", "s32", "s32", "s32.s8.s8.s32", 1, 4, 8, 8},
    {"m16n16k16", 16, 16, 16, "u8", "s32", "s32", "s32.u8.u8.s32.satfinite", 2, 2, 8, 8},
    {"m32n8k16", 32, 8, 16, "u8", "s32", "s32", "s32.u8.u8.s32", 4, 1, 8, 8},
    {"m8n32k16", 8, 32, 16, "u8", "s32", "s32", "s32.u8.u8.s32", 1, 4, 8, 8},
    {"m16n16k8", 16, 16, 8, "tf32", "f32", "f32", "f32.tf32.tf32.f32", 4, 4, 8, 8},
    {"m8n8k4", 8, 8, 4, "f64", "f64", "f64", "f64.f64.f64.f64", 1, 1, 2, 2},
    {"m8n8k4", 8, 8, 4, "f64", "f64", "f64", "rn.f64.f64.f64.f64", 1, 1, 2, 2},
};

std::string reg_prefix(const std::string& type) { return type == "f64" ? "%fd" : "%r"; }

void expect_each_byte_once(const InMemory& m, const std::string& what, bool store, std::size_t from,
                           std::uint64_t base) {
  std::set<std::uint64_t> seen;
  std::size_t count = 0;
  const auto& recorded = fake_memory().recorded;
  for (std::size_t a = from; a < recorded.size(); ++a) {
    EXPECT_EQ(recorded[a].store, store) << what;
    for (std::uint32_t l = 0; l < 32; ++l) {
      if ((recorded[a].mask >> l & 1u) == 0) continue;
      for (std::uint32_t b = 0; b < recorded[a].bytes; ++b, ++count) {
        seen.insert(recorded[a].address[l] + b - base);
      }
    }
  }
  std::set<std::uint64_t> expected;
  for (int r = 0; r < m.rows; ++r) {
    for (int c = 0; c < m.cols; ++c) {
      const auto first = static_cast<std::uint64_t>(m.element(r, c) - fake_memory().bytes.data());
      for (int b = 0; b < bytes_of(m.type); ++b)
        expected.insert(first + static_cast<std::uint64_t>(b));
    }
  }
  EXPECT_EQ(seen, expected) << what;
  EXPECT_EQ(count, expected.size()) << what;
}

std::string layout_name(bool column_major) { return column_major ? "col" : "row"; }

TEST(Wmma, EveryShapeTypeAndLayout) {
  std::mt19937 random(5);
  const std::string spaces[] = {"", ".global", ".shared"};
  int variant = 0;
  for (const Wmma& p : kWmma) {
    for (int layouts = 0; layouts < 16; ++layouts, ++variant) {
      const std::string space = spaces[variant % 3];
      const std::uint64_t base = space == ".shared" ? 0 : kGlobalRange.begin;
      const std::string address = space == ".shared" ? "%r200" : "%rd1";
      const std::string tag =
          p.shape + "." + p.types + " layouts " + std::to_string(layouts) + space;
      SCOPED_TRACE(tag);
      const InMemory a = matrix(p.multiplicand, p.m, p.k, (layouts & 1) != 0, 0x1000);
      const InMemory b = matrix(p.multiplicand, p.k, p.n, (layouts & 2) != 0, 0x3000);
      const InMemory c = matrix(p.accumulator_c, p.m, p.n, (layouts & 4) != 0, 0x5000);
      const InMemory d = matrix(p.accumulator_d, p.m, p.n, (layouts & 8) != 0, 0x8000);
      FakeWarp w;
      std::fill(fake_memory().bytes.begin(), fake_memory().bytes.end(), std::byte{0xcd});
      for (const InMemory* in : {&a, &b, &c}) fill_random(*in, random);
      const auto line = [&](const char* op, const InMemory& m, const std::string& fragment,
                            int offset) {
        fake_memory().recorded.clear();
        for (int l = 0; l < 32; ++l) {
          w.r64("%rd1").v[l] = base + m.at - static_cast<std::uint64_t>(offset);
          w.r32("%r200").v[l] =
              static_cast<std::uint32_t>(m.at) - static_cast<std::uint32_t>(offset);
          w.r32("%r201").v[l] = static_cast<std::uint32_t>(m.stride);
        }
        const std::string place = "[" + address + "+" + std::to_string(offset) + "]";
        const bool store = std::string(op) == "store.d";
        w.run(joined("wmma.", op, ".sync.aligned.", layout_name(m.column_major), ".", p.shape,
                     space, ".", m.type, " ", store ? place : fragment, ", ",
                     store ? fragment : place, ", %r201;"));
        expect_each_byte_once(m, op, store, 0, base);
        for (const Recorded& access : fake_memory().recorded) {
          EXPECT_EQ(access.space, space.empty()        ? ptx::Space::generic
                                  : space == ".global" ? ptx::Space::global
                                                       : ptx::Space::shared);
        }
      };
      const std::string fa = list(reg_prefix(p.multiplicand), 10, p.registers_a);
      const std::string fb = list(reg_prefix(p.multiplicand), 20, p.registers_b);
      const std::string fc = list(reg_prefix(p.accumulator_c), 30, p.registers_c);
      const std::string fd = list(reg_prefix(p.accumulator_d), 40, p.registers_d);
      line("load.a", a, fa, 0);
      line("load.b", b, fb, 64);
      line("load.c", c, fc, -32);
      w.run(joined("wmma.mma.sync.aligned.", layout_name(a.column_major), ".",
                   layout_name(b.column_major), ".", p.shape, ".", p.types, " ", fd, ", ", fa, ", ",
                   fb, ", ", fc, ";"));
      line("store.d", d, fd, 16);
      for (int i = 0; i < p.m; ++i) {
        for (int j = 0; j < p.n; ++j) {
          long double sum = c.get(i, j);
          for (int k = 0; k < p.k; ++k) sum += static_cast<long double>(a.get(i, k)) * b.get(k, j);
          double expected = static_cast<double>(sum);
          if (p.accumulator_d == "f16") expected = widen(to_half<Half>(expected));
          ASSERT_EQ(d.get(i, j), expected) << i << ", " << j;
        }
      }
    }
  }
}

TEST(Wmma, WithoutAStrideLinesFollowOneAnother) {
  FakeWarp w;
  std::mt19937 random(6);
  InMemory a = matrix("f16", 16, 16, true, 0x1000), d = matrix("f16", 16, 16, false, 0x4000);
  a.stride = d.stride = 16;
  fill_random(a, random);
  // A fragment of B cannot be stored, since it is no accumulator: store its product with the
  // identity.
  InMemory one = matrix("f16", 16, 16, false, 0x2000);
  one.stride = 16;
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 16; ++c) one.set(r, c, r == c ? 1 : 0);
  }
  w.fill32("%r1", [&](auto) { return a.at; });
  w.fill32("%r2", [&](auto) { return one.at; });
  w.fill32("%r3", [&](auto) { return d.at; });
  const std::string fa = list("%r", 10, 8), fb = list("%r", 20, 8), fd = list("%r", 30, 4);
  w.run("wmma.load.a.sync.aligned.col.m16n16k16.shared.f16 " + fa + ", [%r1];");
  w.run("wmma.load.b.sync.aligned.row.m16n16k16.shared::cta.f16 " + fb + ", [%r2];");
  for (int r = 30; r < 34; ++r) w.fill32("%r" + std::to_string(r), [](auto) { return 0; });
  w.run("wmma.mma.sync.aligned.col.row.m16n16k16.f16.f16 " + fd + ", " + fa + ", " + fb + ", " +
        fd + ";");
  w.run("wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%r3], " + fd + ";");
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 16; ++c) ASSERT_EQ(d.get(r, c), a.get(r, c));
  }
}

// CUDA code scales fragments element by element: all copies of an element must change alike, and an
// accumulator that is loaded and stored must keep its layout.
TEST(Wmma, FragmentsAreTreatedElementwise) {
  for (const auto& [shape, rows, cols] :
       {std::tuple{"m16n16k16", 16, 16}, {"m32n8k16", 32, 8}, {"m8n32k16", 8, 32}}) {
    FakeWarp w;
    std::mt19937 random(8);
    const InMemory c = matrix("f32", rows, cols, false, 0x1000);
    fill_random(c, random);
    w.fill32("%r1", [&](auto) { return c.at; });
    w.fill32("%r2", [&](auto) { return c.stride; });
    const std::string f = list("%r", 10, 8),
                      head = ".sync.aligned.row." + std::string(shape) + ".shared.f32 ";
    std::vector<double> before;
    for (int e = 0; e < rows * cols; ++e) before.push_back(c.get(e / cols, e % cols));
    w.run(joined("wmma.load.c", head, f, ", [%r1], %r2;"));
    for (int r = 10; r < 18; ++r) {
      for (auto& v : w.r32("%r" + std::to_string(r)).v) {
        v = std::bit_cast<std::uint32_t>(std::bit_cast<float>(v) * 3 + 1);
      }
    }
    w.run(joined("wmma.store.d", head, "[%r1], ", f, ", %r2;"));
    for (int e = 0; e < rows * cols; ++e) {
      ASSERT_EQ(c.get(e / cols, e % cols), before[static_cast<std::size_t>(e)] * 3 + 1);
    }
  }
}

TEST(Wmma, LanesMustAgreeOnTheMatrix) {
  FakeWarp w;
  const std::string load =
      "wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 " + list("%r", 10, 4) + ", [%r1], %r2;";
  w.fill32("%r2", [](auto) { return 16; });
  w.fill32("%r1", [](auto l) { return l == 7 ? 32 : 0; });
  EXPECT_THROW(
      try { w.run(load); } catch (const Failed& f) {
        EXPECT_EQ(f.kind, FindingKind::warp_sync);
        EXPECT_EQ(f.lane, 7u);
        throw;
      },
      Failed);
  w.fill32("%r1", [](auto) { return 0; });
  w.fill32("%r2", [](auto l) { return l == 0 ? 32 : 16; });
  EXPECT_THROW(w.run(load), Failed);
}

// ldmatrix, stmatrix, movmatrix.

// 32 rows of 8 elements, in a scattered order: row r at row_address(r).
std::uint32_t row_address(std::uint32_t row) { return 0x2000 + (row * 13 % 32) * 48; }
std::uint16_t element(std::uint32_t row, std::uint32_t col) {
  return static_cast<std::uint16_t>(row * 256 + col * 3 + 1);
}

void fill_rows() {
  for (std::uint32_t r = 0; r < 32; ++r) {
    for (std::uint32_t c = 0; c < 8; ++c) {
      const std::uint16_t e = element(r, c);
      std::memcpy(fake_memory().bytes.data() + row_address(r) + 2 * c, &e, 2);
    }
  }
}

// The element in one half of a lane's register, by the ISA's figure: thread 0 has the first two
// elements of row 0.
std::uint16_t in_fragment(std::uint32_t matrix, std::uint32_t lane, std::uint32_t half,
                          bool trans) {
  const std::uint32_t line = lane / 4, place = lane % 4 * 2 + half;
  return trans ? element(8 * matrix + place, line) : element(8 * matrix + line, place);
}

TEST(Ldmatrix, EveryCountAndTranspose) {
  fill_rows();
  for (const int count : {1, 2, 4}) {
    for (const bool trans : {false, true}) {
      for (const bool generic : {false, true}) {
        FakeWarp w;
        fake_memory().recorded.clear();
        for (std::uint32_t l = 0; l < 32; ++l) {
          // Lanes that supply no row have an invalid address.
          w.r32("%r1").v[l] =
              l < 8u * static_cast<unsigned>(count) ? row_address(l) - 16 : 0xfffffff1u;
          w.r64("%rd1").v[l] = kSharedRange.begin + w.r32("%r1").v[l];
        }
        const std::string x = ".x" + std::to_string(count), t = trans ? ".trans" : "";
        w.run("ldmatrix.sync.aligned" + (trans ? x + t + ".m8n8" : ".m8n8" + x) +
              (generic ? "" : ".shared") + ".b16 " + list("%r", 10, count) +
              (generic ? ", [%rd1+16];" : ", [%r1+16];"));
        for (int j = 0; j < count; ++j) {
          for (std::uint32_t l = 0; l < 32; ++l) {
            const std::uint32_t v = w.r32("%r" + std::to_string(10 + j)).v[l];
            ASSERT_EQ(v & 0xffffu, in_fragment(static_cast<unsigned>(j), l, 0, trans));
            ASSERT_EQ(v >> 16, in_fragment(static_cast<unsigned>(j), l, 1, trans));
          }
        }
        ASSERT_EQ(fake_memory().recorded.size(), 1u);
        EXPECT_EQ(fake_memory().recorded[0].bytes, 16u);
        EXPECT_EQ(std::popcount(fake_memory().recorded[0].mask), 8 * count);
      }
    }
  }
}

TEST(Stmatrix, EveryCountAndTranspose) {
  for (const int count : {1, 2, 4}) {
    for (const bool trans : {false, true}) {
      FakeWarp w;
      std::fill(fake_memory().bytes.begin(), fake_memory().bytes.end(), std::byte{0});
      for (std::uint32_t l = 0; l < 32; ++l) {
        w.r32("%r1").v[l] = row_address(l);
        for (std::uint32_t j = 0; j < static_cast<unsigned>(count); ++j) {
          w.r32("%r" + std::to_string(10 + j)).v[l] =
              in_fragment(j, l, 0, trans) | std::uint32_t{in_fragment(j, l, 1, trans)} << 16;
        }
      }
      w.run("stmatrix.sync.aligned.m8n8.x" + std::to_string(count) + (trans ? ".trans" : "") +
            ".shared.b16 [%r1], " + list("%r", 10, count) + ";");
      for (std::uint32_t r = 0; r < 32; ++r) {
        for (std::uint32_t c = 0; c < 8; ++c) {
          std::uint16_t e = 0;
          std::memcpy(&e, fake_memory().bytes.data() + row_address(r) + 2 * c, 2);
          ASSERT_EQ(e, r < 8u * static_cast<unsigned>(count) ? element(r, c) : 0);
        }
      }
    }
  }
}

TEST(Movmatrix, Transposes) {
  FakeWarp w;
  for (std::uint32_t l = 0; l < 32; ++l) {
    w.r32("%r1").v[l] = in_fragment(0, l, 0, false) | std::uint32_t{in_fragment(0, l, 1, false)}
                                                          << 16;
  }
  w.run("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;");
  for (std::uint32_t l = 0; l < 32; ++l) {
    EXPECT_EQ(w.r32("%r1").v[l] & 0xffffu, in_fragment(0, l, 0, true));
    EXPECT_EQ(w.r32("%r1").v[l] >> 16, in_fragment(0, l, 1, true));
  }
}

// mma.sync.

// C = A B, row-major f16 with f32 sums, as in a kernel: rows loaded by ldmatrix, B by .trans.
TEST(Mma, MultipliesWhatLdmatrixLoads) {
  constexpr int m = 32, n = 24, k = 48;
  std::mt19937 random(9);
  const InMemory a = matrix("f16", m, k, false, 0x0), b = matrix("f16", k, n, false, 0x2000);
  fill_random(a, random);
  fill_random(b, random);
  const auto offset = [](const InMemory& x, std::uint32_t r, std::uint32_t c) {
    return static_cast<std::uint32_t>(x.at) + 2 * (r * static_cast<std::uint32_t>(x.stride) + c);
  };
  for (int i = 0; i < m; i += 16) {
    for (int j = 0; j < n; j += 8) {
      FakeWarp w;
      for (int r = 30; r < 34; ++r) w.fill32("%f" + std::to_string(r), [](auto) { return 0; });
      for (int p = 0; p < k; p += 16) {
        const auto row = static_cast<std::uint32_t>(i), col = static_cast<std::uint32_t>(j),
                   at = static_cast<std::uint32_t>(p);
        w.fill32("%r1", [&](std::uint32_t l) { return offset(a, row + l % 16, at + l / 16 * 8); });
        w.fill32("%r2", [&](std::uint32_t l) { return offset(b, at + l % 16, col); });
        w.run("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r1];");
        w.run("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r20, %r21}, [%r2];");
        w.run(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f30, %f31, %f32, %f33}, "
            "{%r10, %r11, %r12, %r13}, {%r20, %r21}, {%f30, %f31, %f32, %f33};");
      }
      for (int l = 0; l < 32; ++l) {
        for (int e = 0; e < 4; ++e) {
          const int r = i + l / 4 + e / 2 * 8, c = j + l % 4 * 2 + e % 2;
          double expected = 0;
          for (int p = 0; p < k; ++p) expected += a.get(r, p) * b.get(p, c);
          ASSERT_EQ(std::bit_cast<float>(w.r32("%f" + std::to_string(30 + e)).v[l]), expected);
        }
      }
    }
  }
}

// Operands reach the arithmetic in order: 1 at A[0][0] (lane 0, first register), 5 at B[0][0], and
// C everywhere, for every type.
struct Routed {
  const char* name;
  int a, b, c;  // registers
  const char* prefix;
  std::uint32_t one, five, c_bits;
  std::uint32_t d;  // at lane 0, low bits of the first register
};

TEST(Mma, OperandsInOrder) {
  const Routed all[] = {
      {"m16n8k8.row.col.f16.f16.f16.f16", 2, 1, 2, "%r", 0x3c00, 0x4500, 0x40004000, 0x40004700},
      {"m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, "%f", 0x3f80, 0x40a0, 0x40000000, 0x40e00000},
      {"m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, "%f", 0x3f800000, 0x40a00000, 0x40000000,
       0x40e00000},
      {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 4, 2, 4, "%f", 0x38, 0x45, 0x40000000, 0x40e00000},
      {"m16n8k32.row.col.f16.e5m2.e4m3.f16", 4, 2, 2, "%r", 0x3c, 0x4a, 0x40004000, 0x40004700},
      {"m8n8k16.row.col.s32.s8.u8.s32", 1, 1, 2, "%r", 1, 5, 2, 7},
      {"m16n8k32.row.col.satfinite.s32.u8.s8.s32", 4, 2, 4, "%r", 1, 5, 0x7ffffffe, 0x7fffffff},
      {"m16n8k32.row.col.s32.s8.s8.s32.satfinite", 4, 2, 4, "%r", 1, 5, 0x7ffffffe, 0x7fffffff},
      {"m16n8k32.row.col.s32.s8.s8.s32", 4, 2, 4, "%r", 1, 5, 0x7ffffffe, 0x80000003},
      {"m16n8k64.row.col.s32.s4.u4.s32", 4, 2, 4, "%r", 1, 5, 2, 7},
      {"m16n8k256.row.col.s32.b1.b1.s32.xor.popc", 4, 2, 4, "%r", 1, 5, 2, 3},
      {"m16n8k256.row.col.s32.b1.b1.s32.and.popc", 4, 2, 4, "%r", 1, 5, 2, 3},
      {"m8n8k128.row.col.s32.b1.b1.s32.and.popc", 1, 1, 2, "%r", 3, 7, 2, 4},
  };
  for (const Routed& p : all) {
    FakeWarp w;
    for (int r = 10; r < 30; ++r) w.fill32("%r" + std::to_string(r), [](auto) { return 0; });
    w.r32("%r10").v[0] = p.one;
    w.r32("%r20").v[0] = p.five;
    for (int r = 0; r < p.c; ++r)
      w.fill32(p.prefix + std::to_string(30 + r), [&](auto) { return p.c_bits; });
    const auto single = [&](const char* prefix, int first, int count) {
      return count == 1 ? prefix + std::to_string(first) : list(prefix, first, count);
    };
    w.run("mma.sync.aligned." + std::string(p.name) + " " + list(p.prefix, 40, p.c) + ", " +
          single("%r", 10, p.a) + ", " + single("%r", 20, p.b) + ", " + list(p.prefix, 30, p.c) +
          ";");
    EXPECT_EQ(w.r32(p.prefix + std::string("40")).v[0], p.d) << p.name;
    const bool ones = std::string(p.name).find("b1") != std::string::npos;
    if (!ones) {
      EXPECT_EQ(w.r32(p.prefix + std::string("40")).v[31], p.c_bits) << p.name;
    }
  }
}

TEST(Mma, OfDoubles) {
  FakeWarp w;
  const auto bits = [](double v) { return std::bit_cast<std::uint64_t>(v); };
  for (int l = 0; l < 32; ++l) {
    w.r64("%fd1").v[l] = bits(l == 4 * 3 + 1 ? 2.5 : 0);  // A[3][1]
    w.r64("%fd2").v[l] = bits(l == 4 * 6 + 1 ? 4.0 : 0);  // B[1][6]
    w.r64("%fd3").v[l] = bits(0.25);
    w.r64("%fd4").v[l] = bits(0.5);
  }
  w.run(
      "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd3, %fd4}, {%fd1}, {%fd2}, {%fd3, "
      "%fd4};");
  for (int l = 0; l < 32; ++l) {
    EXPECT_EQ(w.r64("%fd3").v[l], bits(l == 4 * 3 + 3 ? 10.25 : 0.25));
    EXPECT_EQ(w.r64("%fd4").v[l], bits(0.5));
  }
}

TEST(TensorOps, NeedTheWholeWarp) {
  for (const std::string text :
       {"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, %r3, %r4, {%r1, %r2};",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];",
        "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;",
        "wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%fd1}, [%rd1], 4;",
        "wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%rd1], {%fd1, %fd2}, 8;"}) {
    FakeWarp w;
    w.activate(0xffffffdfu);
    try {
      w.run(text);
      ADD_FAILURE() << text;
    } catch (const Failed& f) {
      EXPECT_EQ(f.kind, FindingKind::warp_sync);
      EXPECT_EQ(f.lane, 5u);
    }
    const Selection s = select_for_test(instruction(text));
    EXPECT_TRUE(s.rendezvous);
    EXPECT_EQ(s.mask_operand, 255);
  }
}

TEST(TensorOps, ClassesAndFlops) {
  const auto of = [](const char* text) { return select_for_test(instruction(text)); };
  const Selection mma =
      of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, "
         "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};");
  EXPECT_EQ(mma.cls, InstrClass::tensor);
  EXPECT_EQ(mma.tensor_flops, 4096u);
  EXPECT_EQ(of("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];").cls, InstrClass::memory);
  EXPECT_EQ(of("wmma.load.a.sync.aligned.row.m8n8k4.f64 {%fd1}, [%rd1], 4;").cls,
            InstrClass::memory);
  EXPECT_EQ(of("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;").cls, InstrClass::warp);
}

TEST(TensorOps, OthersAreRefusedByName) {
  const std::string c = "{%f1, %f2, %f3, %f4}", a = "{%r1, %r2, %r3, %r4}", b = "{%r5, %r6}";
  for (const std::string& text :
       {joined("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 ", c, ", ", a, ", ", a, ", ",
               c, ", %r9, 0;"),
        joined("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 ", c, ", ",
               a, ", ", a, ", ", c, ", %r9, 0;"),
        joined("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 ", list("%f", 1, 8), ", ", b, ", ",
               b, ", ", list("%f", 1, 8), ";"),
        joined("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 ", c, ", ", a,
               ", ", b, ", ", c, ";"),
        joined("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 ", c, ", ", a, ", ", b, ", ", c,
               ";"),
        joined("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32 ", b, ", ", a, ", ", b, ", ", c,
               ";"),
        joined("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 ", c, ", ", a, ", ", b, ", ", c,
               ";"),
        joined("mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 ", c, ", ", a, ", ", b,
               ", ", c, ";"),
        joined("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ", c, ", ", b, ", ", b, ", ", c,
               ";"),
        joined("mma.sync.m16n8k16.row.col.f32.f16.f16.f32 ", c, ", ", a, ", ", b, ", ", c, ";"),
        std::string("tcgen05.wait::ld.sync.aligned;"),
        std::string("wmma.load.a.sync.aligned.row.m8n8k32.s4 {%r1}, [%rd1], %r2;"),
        std::string("wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r1, %r2}, {%r3}, "
                    "{%r4}, {%r1, %r2};"),
        std::string("wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r1, %r2}, "
                    "{%r3}, {%r4}, {%r1, %r2};"),
        std::string("wmma.mma.sync.aligned.row.col.m8n8k4.rz.f64.f64.f64.f64 {%fd1, %fd2}, "
                    "{%fd3}, {%fd4}, {%fd1, %fd2};"),
        std::string("wmma.load.a.sync.aligned.row.m16n16k16.local.f16 " + list("%r", 1, 8) +
                    ", [%rd1], %r20;"),
        std::string("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];"),
        std::string("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r3];"),
        std::string("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r3], {%r1};"),
        std::string("movmatrix.sync.aligned.m8n8.b16 %r1, %r2;")}) {
    try {
      select_tensor(instruction(text));
      ADD_FAILURE() << text << " is selected";
    } catch (const Unsupported& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr(text.substr(0, text.find_first_of(" ;"))));
    }
  }
  EXPECT_EQ(select_tensor(instruction("add.u32 %r1, %r2, %r3;")), std::nullopt);
}

}  // namespace
}  // namespace assay::sim
