// The products of tensor cores, compared with a plain triple loop. Matrices are put into registers
// by the formulas of the PTX ISA ("Matrix Fragments for mma.*"), each written out as it is there.
#include "sim/math/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/paths.h"

namespace assay::sim {
namespace {

// Element i of lane (g, t), g = lane >> 2, t = lane % 4: its row and column.
using Place = int (*)(int i, int g, int t);

struct Layout {
  int elements;  // per lane
  Place row, col;
};

// Accumulators.
const Layout kC16{4, [](int i, int g, int) { return i < 2 ? g : g + 8; },
                  [](int i, int, int t) { return t * 2 + (i & 1); }};
const Layout kC8{2, [](int, int g, int) { return g; }, [](int i, int, int t) { return t * 2 + i; }};

struct Product {
  const char* name;
  MmaShape shape;
  TensorType a, b;
  Layout layout_a, layout_b, layout_c;
};

const Layout kA16x16Half{
    8, [](int i, int g, int) { return (0 <= i && i < 2) || (4 <= i && i < 6) ? g : g + 8; },
    [](int i, int, int t) { return i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8; }};
const Layout kB16Half{
    4, [](int i, int, int t) { return i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8; },
    [](int, int g, int) { return g; }};
const Layout kA16x8Half{4, [](int i, int g, int) { return i < 2 ? g : g + 8; },
                        [](int i, int, int t) { return t * 2 + (i & 1); }};
const Layout kB8Half{2, [](int i, int, int t) { return t * 2 + i; },
                     [](int, int g, int) { return g; }};
// For both tf32 and f64.
const Layout kA16x4Word{2, [](int i, int g, int) { return i == 0 ? g : g + 8; },
                        [](int, int, int t) { return t; }};
const Layout kB4Word{1, [](int, int, int t) { return t; }, [](int, int g, int) { return g; }};
const Layout kA16x8Word{4, [](int i, int g, int) { return i == 0 || i == 2 ? g : g + 8; },
                        [](int i, int, int t) { return i == 0 || i == 1 ? t : t + 4; }};
const Layout kB8Word{2, [](int i, int, int t) { return i == 0 ? t : t + 4; },
                     [](int, int g, int) { return g; }};
const Layout kA16x16Double{
    8, [](int i, int g, int) { return i % 2 == 0 ? g : g + 8; },
    [](int i, int, int t) { return i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t; }};
const Layout kB16Double{4, [](int i, int, int t) { return t + i * 4; },
                        [](int, int g, int) { return g; }};
const Layout kA8x4Double{1, [](int, int g, int) { return g; }, [](int, int, int t) { return t; }};
// 8 bits.
const Layout kA8x16Byte{4, [](int, int g, int) { return g; },
                        [](int i, int, int t) { return t * 4 + i; }};
const Layout kB16Byte{4, [](int i, int, int t) { return t * 4 + i; },
                      [](int, int g, int) { return g; }};
const Layout kA16x16Byte{8, [](int i, int g, int) { return i < 4 ? g : g + 8; },
                         [](int i, int, int t) { return t * 4 + (i & 3); }};
const Layout kA16x32Byte{
    16, [](int i, int g, int) { return (0 <= i && i < 4) || (8 <= i && i < 12) ? g : g + 8; },
    [](int i, int, int t) { return i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16; }};
const Layout kB32Byte{
    8, [](int i, int, int t) { return i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16; },
    [](int, int g, int) { return g; }};
// 4 bits.
const Layout kA8x32Nibble{8, [](int, int g, int) { return g; },
                          [](int i, int, int t) { return t * 8 + i; }};
const Layout kB32Nibble{8, [](int i, int, int t) { return t * 8 + i; },
                        [](int, int g, int) { return g; }};
const Layout kA16x32Nibble{16, [](int i, int g, int) { return i < 8 ? g : g + 8; },
                           [](int i, int, int t) { return t * 8 + (i & 7); }};
const Layout kA16x64Nibble{
    32, [](int i, int g, int) { return (0 <= i && i < 8) || (16 <= i && i < 24) ? g : g + 8; },
    [](int i, int, int t) { return i < 16 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32; }};
const Layout kB64Nibble{
    16, [](int i, int, int t) { return i < 8 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32; },
    [](int, int g, int) { return g; }};
// 1 bit.
const Layout kA8x128Bit{32, [](int, int g, int) { return g; },
                        [](int i, int, int t) { return t * 32 + i; }};
const Layout kB128Bit{32, [](int i, int, int t) { return t * 32 + i; },
                      [](int, int g, int) { return g; }};
const Layout kA16x128Bit{64, [](int i, int g, int) { return i < 32 ? g : g + 8; },
                         [](int i, int, int t) { return t * 32 + (i & 31); }};
const Layout kA16x256Bit{
    128, [](int i, int g, int) { return i < 32 || (64 <= i && i < 96) ? g : g + 8; },
    [](int i, int, int t) { return i < 64 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128; }};
const Layout kB256Bit{
    64, [](int i, int, int t) { return i < 32 ? t * 32 + i : t * 32 + (i & 31) + 128; },
    [](int, int g, int) { return g; }};

using enum TensorType;

const Product kProducts[] = {
    {"m16n8k8.f16", {16, 8, 8}, f16, f16, kA16x8Half, kB8Half, kC16},
    {"m16n8k16.f16", {16, 8, 16}, f16, f16, kA16x16Half, kB16Half, kC16},
    {"m16n8k8.bf16", {16, 8, 8}, bf16, bf16, kA16x8Half, kB8Half, kC16},
    {"m16n8k16.bf16", {16, 8, 16}, bf16, bf16, kA16x16Half, kB16Half, kC16},
    {"m16n8k4.tf32", {16, 8, 4}, tf32, tf32, kA16x4Word, kB4Word, kC16},
    {"m16n8k8.tf32", {16, 8, 8}, tf32, tf32, kA16x8Word, kB8Word, kC16},
    {"m16n8k16.e4m3", {16, 8, 16}, e4m3, e4m3, kA16x16Byte, kB16Byte, kC16},
    {"m16n8k32.e4m3", {16, 8, 32}, e4m3, e4m3, kA16x32Byte, kB32Byte, kC16},
    {"m16n8k32.e5m2", {16, 8, 32}, e5m2, e5m2, kA16x32Byte, kB32Byte, kC16},
    {"m16n8k32.e4m3.e5m2", {16, 8, 32}, e4m3, e5m2, kA16x32Byte, kB32Byte, kC16},
    {"m16n8k32.e5m2.e4m3", {16, 8, 32}, e5m2, e4m3, kA16x32Byte, kB32Byte, kC16},
    {"m8n8k16.s8", {8, 8, 16}, s8, s8, kA8x16Byte, kB16Byte, kC8},
    {"m16n8k16.s8", {16, 8, 16}, s8, s8, kA16x16Byte, kB16Byte, kC16},
    {"m16n8k32.s8", {16, 8, 32}, s8, s8, kA16x32Byte, kB32Byte, kC16},
    {"m8n8k16.u8", {8, 8, 16}, u8, u8, kA8x16Byte, kB16Byte, kC8},
    {"m16n8k16.u8.s8", {16, 8, 16}, u8, s8, kA16x16Byte, kB16Byte, kC16},
    {"m16n8k32.s8.u8", {16, 8, 32}, s8, u8, kA16x32Byte, kB32Byte, kC16},
    {"m16n8k32.u8", {16, 8, 32}, u8, u8, kA16x32Byte, kB32Byte, kC16},
    {"m8n8k32.s4", {8, 8, 32}, s4, s4, kA8x32Nibble, kB32Nibble, kC8},
    {"m16n8k32.u4.s4", {16, 8, 32}, u4, s4, kA16x32Nibble, kB32Nibble, kC16},
    {"m16n8k64.s4.u4", {16, 8, 64}, s4, u4, kA16x64Nibble, kB64Nibble, kC16},
    {"m16n8k64.u4", {16, 8, 64}, u4, u4, kA16x64Nibble, kB64Nibble, kC16},
    {"m8n8k128.b1", {8, 8, 128}, b1, b1, kA8x128Bit, kB128Bit, kC8},
    {"m16n8k128.b1", {16, 8, 128}, b1, b1, kA16x128Bit, kB128Bit, kC16},
    {"m16n8k256.b1", {16, 8, 256}, b1, b1, kA16x256Bit, kB256Bit, kC16},
};

struct DoubleProduct {
  MmaShape shape;
  Layout layout_a, layout_b, layout_c;
};

const DoubleProduct kDoubleProducts[] = {
    {{8, 8, 4}, kA8x4Double, kB4Word, kC8},
    {{16, 8, 4}, kA16x4Word, kB4Word, kC16},
    {{16, 8, 8}, kA16x8Word, kB8Word, kC16},
    {{16, 8, 16}, kA16x16Double, kB16Double, kC16},
};

bool is_float(TensorType t) { return t <= e5m2; }

// With 8 bits of exponent, as many as the sums have.
std::vector<Product> products_with_wide_exponents() {
  std::vector<Product> wide;
  std::ranges::copy_if(kProducts, std::back_inserter(wide),
                       [](const Product& p) { return p.a == tf32 || p.a == bf16; });
  return wide;
}

// The bits of a value that the format can represent.
std::uint32_t encode_float(double value, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + fraction_bits) : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  const double units = std::ldexp(magnitude, fraction_bits - exponent);
  EXPECT_EQ(units, std::floor(units)) << value << " is not representable";
  const auto significand = static_cast<std::uint32_t>(units);
  if (significand < 1u << fraction_bits) return sign | significand;  // subnormal
  // The leading bit of the significand adds the 1 that was left out of the exponent.
  return sign + (static_cast<std::uint32_t>(exponent + bias - 1) << fraction_bits) + significand;
}

std::uint32_t encode(TensorType type, double value) {
  switch (type) {
    case f16: return encode_float(value, 5, 10);
    case bf16: return encode_float(value, 8, 7);
    case tf32: return encode_float(value, 8, 23);
    case e4m3: return encode_float(value, 4, 3);
    case e5m2: return encode_float(value, 5, 2);
    default:
      return static_cast<std::uint32_t>(static_cast<int>(value)) &
             ((std::uint64_t{1} << bits_of(type)) - 1);
  }
}

using Random = std::mt19937;

int between(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

// The rule of tensor.h again, in integers: terms are significands and exponents.
struct Term {
  bool negative = false;
  unsigned __int128 significand = 0;
  int unit = 0;      // exponent of the significand's last place
  int exponent = 0;  // the sum of the operands' exponents
};

// The term for a value of a format with that many fraction bits, whose normal numbers begin at
// 2^least.
Term term_of(double value, int fraction_bits, int least) {
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return {};
  Term t;
  t.negative = value < 0;
  t.exponent = std::max(std::ilogb(magnitude), least);
  t.unit = t.exponent - fraction_bits;
  t.significand = static_cast<std::uint64_t>(std::ldexp(magnitude, -t.unit));
  return t;
}

Term operator*(const Term& x, const Term& y) {
  return {x.negative != y.negative, x.significand * y.significand, x.unit + y.unit,
          x.exponent + y.exponent};
}

// The exact sum of the terms, each cut off 25 bits below the largest exponent.
double truncated_sum(const std::vector<Term>& terms) {
  int top = std::numeric_limits<int>::min();
  for (const Term& t : terms) {
    if (t.significand != 0) top = std::max(top, t.exponent);
  }
  if (top == std::numeric_limits<int>::min()) return 0;
  std::int64_t sum = 0;
  for (const Term& t : terms) {
    const int up = t.unit - (top - 25);
    const auto kept = static_cast<std::int64_t>(up >= 0     ? t.significand << up
                                                : up > -128 ? t.significand >> -up
                                                            : 0);
    sum += t.negative ? -kept : kept;
  }
  return std::ldexp(static_cast<double>(sum), top - 25);
}

float towards_zero(double x) {
  const auto f = static_cast<float>(x);
  return std::fabs(static_cast<double>(f)) > std::fabs(x) ? std::nextafterf(f, 0) : f;
}

struct Format {
  int fraction_bits, least;
};
Format format_of(TensorType type) {
  switch (type) {
    case f16: return {10, -14};
    case bf16: return {7, -126};
    case tf32: return {10, -126};
    default: return {10, -14};  // fp8 is converted to f16
  }
}

float sum_of_row(TensorType type_a, TensorType type_b, const std::vector<double>& a,
                 const std::vector<double>& b, float c) {
  std::vector<Term> products;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const Format of_a = format_of(type_a), of_b = format_of(type_b);
    products.push_back(term_of(a[k], of_a.fraction_bits, of_a.least) *
                       term_of(b[k], of_b.fraction_bits, of_b.least));
  }
  if (bits_of(type_a) != 8 || products.size() != 32) {
    products.push_back(term_of(c, 23, -126));
    return towards_zero(truncated_sum(products));
  }
  float sum = 0;
  for (const std::size_t part : {0, 1}) {
    std::vector<Term> terms{term_of(sum, 23, -126)};
    for (std::size_t k = 0; k < products.size(); ++k) {
      if (k / 2 % 2 == part) terms.push_back(products[k]);
    }
    sum = towards_zero(truncated_sum(terms));
  }
  return c + sum;
}

// Values with few bits and many exponents.
double random_value(TensorType type, Random& random) {
  const int sign = between(random, 0, 1) * 2 - 1;
  switch (type) {
    case f16:
    case tf32: return sign * std::ldexp(between(random, 0, 2047), between(random, -8, 0));
    case bf16: return sign * std::ldexp(between(random, 0, 255), between(random, -10, 6));
    case e4m3: return sign * std::ldexp(between(random, 0, 15), between(random, -9, 4));
    case e5m2: return sign * std::ldexp(between(random, 0, 7), between(random, -16, 5));
    case s8: return between(random, -128, 127);
    case u8: return between(random, 0, 255);
    case s4: return between(random, -8, 7);
    case u4: return between(random, 0, 15);
    default: return between(random, 0, 1);
  }
}

using Values = std::vector<std::vector<double>>;

Values random_matrix(TensorType type, int rows, int cols, Random& random) {
  Values m(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(cols)));
  for (auto& row : m) {
    for (double& v : row) v = random_value(type, random);
  }
  return m;
}

double at(const Values& m, int row, int col) {
  return m.at(static_cast<std::size_t>(row)).at(static_cast<std::size_t>(col));
}

// Distributes a matrix to registers by a layout. Elements are packed from the lowest bits.
std::vector<Lanes32> distribute(const Values& m, const Layout& layout, TensorType type) {
  const int bits = bits_of(type), per_register = 32 / bits;
  std::vector<Lanes32> registers(static_cast<std::size_t>(layout.elements / per_register),
                                 Lanes32{});
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < layout.elements; ++i) {
      const double v =
          at(m, layout.row(i, lane >> 2, lane % 4), layout.col(i, lane >> 2, lane % 4));
      registers[static_cast<std::size_t>(i / per_register)].v[lane] |= encode(type, v)
                                                                       << (i % per_register * bits);
    }
  }
  return registers;
}

template <class Lanes>
void point(const std::vector<Lanes>& from, const Lanes** to) {
  for (std::size_t r = 0; r < from.size(); ++r) to[r] = &from[r];
}

// D in f32 or s32 as bits, by row and column.
using Bits = std::vector<std::vector<std::uint32_t>>;

Bits collect(const std::vector<Lanes32>& d, const Layout& layout, MmaShape shape) {
  Bits all(static_cast<std::size_t>(shape.m),
           std::vector<std::uint32_t>(static_cast<std::size_t>(shape.n)));
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < layout.elements; ++i) {
      all[static_cast<std::size_t>(layout.row(i, lane >> 2, lane % 4))]
         [static_cast<std::size_t>(layout.col(i, lane >> 2, lane % 4))] =
             d[static_cast<std::size_t>(i)].v[lane];
    }
  }
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Product>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
}

class Products : public ::testing::TestWithParam<Product> {
 protected:
  // Runs it on registers built from `a`, `b`; `c` and the result are bits by row and column.
  Bits run(const Values& a, const Values& b, const Bits& c, MmaMode mode = {}) {
    const Product& p = GetParam();
    const std::vector<Lanes32> fa = distribute(a, p.layout_a, p.a),
                               fb = distribute(b, p.layout_b, p.b);
    std::vector<Lanes32> fc(static_cast<std::size_t>(p.layout_c.elements));
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < p.layout_c.elements; ++i) {
        fc[static_cast<std::size_t>(i)].v[lane] =
            c[static_cast<std::size_t>(p.layout_c.row(i, lane >> 2, lane % 4))]
             [static_cast<std::size_t>(p.layout_c.col(i, lane >> 2, lane % 4))];
      }
    }
    MmaRegisters<Lanes32> x;
    point(fa, x.a);
    point(fb, x.b);
    point(fc, x.c);
    for (std::size_t r = 0; r < fc.size(); ++r) x.d[r] = &fc[r];  // D replaces C
    mode.a = p.a;
    mode.b = p.b;
    const Mma32 mma = find_mma32(p.a, p.shape);
    if (mma == nullptr) {
      ADD_FAILURE() << "there is no " << p.name;
      return c;
    }
    mma(x, mode);
    return collect(fc, p.layout_c, p.shape);
  }

  Bits random_c(Random& random) const {
    const Product& p = GetParam();
    Bits c(static_cast<std::size_t>(p.shape.m),
           std::vector<std::uint32_t>(static_cast<std::size_t>(p.shape.n)));
    for (auto& row : c) {
      for (auto& v : row) {
        v = is_float(p.a)
                ? std::bit_cast<std::uint32_t>(
                      std::ldexp(static_cast<float>(between(random, -8000000, 8000000)), -16))
                : static_cast<std::uint32_t>(
                      random() % 2 == 0
                          ? random()  // otherwise near the ends of s32
                          : 0x80000000u + static_cast<unsigned>(between(random, -999, 999)));
      }
    }
    return c;
  }
};

TEST_P(Products, AgreesWithATripleLoop) {
  const Product& p = GetParam();
  Random random(7);
  for (int repeat = 0; repeat < 8; ++repeat) {
    const Values a = random_matrix(p.a, p.shape.m, p.shape.k, random);
    const Values b = random_matrix(p.b, p.shape.k, p.shape.n, random);
    const Bits c = random_c(random);
    MmaMode mode;
    mode.saturate = repeat % 2 == 1 && !is_float(p.a) && p.a != b1;
    mode.conjunction = repeat % 2 == 1;
    const Bits d = run(a, b, c, mode);
    for (int i = 0; i < p.shape.m; ++i) {
      for (int j = 0; j < p.shape.n; ++j) {
        long double sum = 0;
        std::vector<double> row, column;
        for (int k = 0; k < p.shape.k; ++k) {
          const double x = at(a, i, k), y = at(b, k, j);
          row.push_back(x);
          column.push_back(y);
          if (p.a == b1) {
            sum += mode.conjunction ? x * y : (x != y ? 1.0 : 0.0);
          } else {
            sum += static_cast<long double>(x) * y;
          }
        }
        const std::uint32_t c_ij = c[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
        std::uint32_t expected = 0;
        if (is_float(p.a)) {
          expected = std::bit_cast<std::uint32_t>(
              sum_of_row(p.a, p.b, row, column, std::bit_cast<float>(c_ij)));
        } else {
          auto exact = static_cast<std::int64_t>(sum) + static_cast<std::int32_t>(c_ij);
          if (mode.saturate) {
            exact = std::min<std::int64_t>(exact, std::numeric_limits<std::int32_t>::max());
            exact = std::max<std::int64_t>(exact, std::numeric_limits<std::int32_t>::min());
          }
          expected = static_cast<std::uint32_t>(exact);
        }
        ASSERT_EQ(d[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)], expected)
            << "element " << i << ", " << j;
      }
    }
  }
}

class ProductsWithWideExponents : public Products {};

Values scaled(Values m, int exponent) {
  for (auto& row : m) {
    for (double& v : row) v = std::ldexp(v, exponent);
  }
  return m;
}

Bits scaled(Bits m, int exponent) {
  for (auto& row : m) {
    for (std::uint32_t& v : row)
      v = std::bit_cast<std::uint32_t>(std::ldexp(std::bit_cast<float>(v), exponent));
  }
  return m;
}

// The rule knows only relative exponents, as long as nothing is subnormal. Values of moderate size
// are computed by other code than very small and very large ones.
TEST_P(ProductsWithWideExponents, ScaleWithTheirFactors) {
  const Product& p = GetParam();
  Random random(5);
  for (const int up : {-100, -75, -49, -30, 20, 45, 51, 100}) {
    for (const int down : {-50, 0, 45}) {
      if (up + down < -125 || up + down > 100) continue;
      const Values a = random_matrix(p.a, p.shape.m, p.shape.k, random);
      const Values b = random_matrix(p.b, p.shape.k, p.shape.n, random);
      // Small enough that all products count. Next to the smallest products it would be subnormal.
      Bits c = scaled(random_c(random), -4);
      if (up + down < -100) {
        for (auto& row : c) std::ranges::fill(row, 0);
      }
      EXPECT_EQ(run(scaled(a, up), scaled(b, down), scaled(c, up + down)),
                scaled(run(a, b, c), up + down))
          << up << " " << down;
    }
  }
}

// One 1 in A and one in B: the product has a single 1, in the row of the first and the column of
// the second, if they meet.
TEST_P(Products, PlacesSingleElements) {
  const Product& p = GetParam();
  const Bits zero(static_cast<std::size_t>(p.shape.m),
                  std::vector<std::uint32_t>(static_cast<std::size_t>(p.shape.n)));
  Random random(11);
  for (int repeat = 0; repeat < 40; ++repeat) {
    Values a(static_cast<std::size_t>(p.shape.m),
             std::vector<double>(static_cast<std::size_t>(p.shape.k)));
    Values b(static_cast<std::size_t>(p.shape.k),
             std::vector<double>(static_cast<std::size_t>(p.shape.n)));
    const int i = between(random, 0, p.shape.m - 1), j = between(random, 0, p.shape.n - 1);
    const int ka = between(random, 0, p.shape.k - 1);
    const int kb = repeat % 2 == 0 ? ka : between(random, 0, p.shape.k - 1);
    a[static_cast<std::size_t>(i)][static_cast<std::size_t>(ka)] = 1;
    b[static_cast<std::size_t>(kb)][static_cast<std::size_t>(j)] = 1;
    MmaMode mode;
    mode.conjunction = true;
    const Bits d = run(a, b, zero, mode);
    for (int r = 0; r < p.shape.m; ++r) {
      for (int c = 0; c < p.shape.n; ++c) {
        const bool one = r == i && c == j && ka == kb;
        const std::uint32_t expected = !one ? 0 : is_float(p.a) ? 0x3f800000u : 1u;
        ASSERT_EQ(d[static_cast<std::size_t>(r)][static_cast<std::size_t>(c)], expected);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tensor, Products, ::testing::ValuesIn(kProducts), name_of);
INSTANTIATE_TEST_SUITE_P(Tensor, ProductsWithWideExponents,
                         ::testing::ValuesIn(products_with_wide_exponents()), name_of);

TEST(TensorF64, IsAChainOfFusedMultiplyAdds) {
  Random random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const DoubleProduct& p : kDoubleProducts) {
    std::vector<Lanes64> a(static_cast<std::size_t>(p.layout_a.elements)),
        b(static_cast<std::size_t>(p.layout_b.elements)),
        c(static_cast<std::size_t>(p.layout_c.elements));
    double ma[16][16], mb[16][8], mc[16][8];
    for (auto& row : ma)
      std::generate(std::begin(row), std::end(row), [&] { return uniform(random); });
    for (auto& row : mb)
      std::generate(std::begin(row), std::end(row), [&] { return uniform(random); });
    for (auto& row : mc)
      std::generate(std::begin(row), std::end(row), [&] { return uniform(random); });
    const auto fill = [](std::vector<Lanes64>& to, const Layout& layout, auto& from) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < layout.elements; ++i) {
          to[static_cast<std::size_t>(i)].v[lane] = std::bit_cast<std::uint64_t>(
              from[layout.row(i, lane >> 2, lane % 4)][layout.col(i, lane >> 2, lane % 4)]);
        }
      }
    };
    fill(a, p.layout_a, ma);
    fill(b, p.layout_b, mb);
    fill(c, p.layout_c, mc);
    MmaRegisters<Lanes64> x;
    point(a, x.a);
    point(b, x.b);
    point(c, x.c);
    for (std::size_t r = 0; r < c.size(); ++r) x.d[r] = &c[r];
    ASSERT_NE(find_mma64(p.shape), nullptr);
    find_mma64(p.shape)(x);
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < p.layout_c.elements; ++i) {
        const int row = p.layout_c.row(i, lane >> 2, lane % 4),
                  col = p.layout_c.col(i, lane >> 2, lane % 4);
        double expected = mc[row][col];
        for (int k = 0; k < p.shape.k; ++k) expected = std::fma(ma[row][k], mb[k][col], expected);
        ASSERT_EQ(std::bit_cast<double>(c[static_cast<std::size_t>(i)].v[lane]), expected);
      }
    }
  }
}

// The product of one row of A by one column of B, both f16, at element 0, 0.
struct OneElement {
  std::vector<double> a, b;
  std::uint32_t c = 0;
};

std::uint32_t element_of_half_product(const OneElement& e, bool half) {
  Values a(16, std::vector<double>(16)), b(16, std::vector<double>(8));
  for (std::size_t k = 0; k < e.a.size(); ++k) {
    a[0][k] = e.a[k];
    b[k][0] = e.b[k];
  }
  const auto fa = distribute(a, kA16x16Half, f16), fb = distribute(b, kB16Half, f16);
  std::vector<Lanes32> fc(half ? 2 : 4, Lanes32{});
  fc[0].v[0] = e.c;
  MmaRegisters<Lanes32> x;
  point(fa, x.a);
  point(fb, x.b);
  point(fc, x.c);
  for (std::size_t r = 0; r < fc.size(); ++r) x.d[r] = &fc[r];
  MmaMode mode;
  mode.a = mode.b = f16;
  mode.half_c = mode.half_d = half;
  find_mma32(f16, {16, 8, 16})(x, mode);
  return half ? fc[0].v[0] & 0xffffu : fc[0].v[0];
}

TEST(TensorRounding, HalfResultsAreRoundedOnce) {
  // 1 + 2^-11 + 2^-24: above the tie between 1 and 1 + 2^-10. Rounding to f32 first would lose the
  // last term, and the tie would go to 1.
  const double tiny = std::ldexp(1, -12);
  EXPECT_EQ(element_of_half_product({{std::ldexp(1, -11), tiny}, {1, tiny}, 0x3c00}, true),
            0x3c01u);
  EXPECT_EQ(element_of_half_product({{std::ldexp(1, -11)}, {1}, 0x3c00}, true), 0x3c00u);
  EXPECT_EQ(element_of_half_product({{3 * std::ldexp(1, -11)}, {1}, 0x3c00}, true), 0x3c02u);
  // Subnormal results, ties to even.
  EXPECT_EQ(element_of_half_product({{std::ldexp(1, -12)}, {std::ldexp(1, -13)}, 0}, true), 0u);
  EXPECT_EQ(element_of_half_product({{std::ldexp(1, -12)}, {std::ldexp(3, -13)}, 0}, true), 2u);
  EXPECT_EQ(element_of_half_product({{std::ldexp(-1, -12)}, {std::ldexp(5, -13)}, 0}, true),
            0x8002u);
}

float sum_of_products(std::vector<double> terms, float c) {
  for (double& term : terms) term *= 1024;  // so that small terms are halves too
  const std::vector<double> factors(terms.size(), std::ldexp(1, -10));
  return std::bit_cast<float>(
      element_of_half_product({terms, factors, std::bit_cast<std::uint32_t>(c)}, false));
}

TEST(TensorRounding, TermsLoseWhatLies25BitsBehindTheLargest) {
  EXPECT_EQ(sum_of_products({-1, std::ldexp(1, -24)}, 1), std::ldexp(1.0f, -24));
  EXPECT_EQ(sum_of_products({-1, std::ldexp(3, -24) / 2}, 1), std::ldexp(1.5f, -24));
  // 1.5 * 1.5 counts with exponent 0, the same as 1, although it is more than 2.
  EXPECT_EQ(std::bit_cast<float>(element_of_half_product(
                {{1.5, -2.25, std::ldexp(1, -12)}, {1.5, 1, std::ldexp(1, -12)}, 0}, false)),
            std::ldexp(1.0f, -24));
  // Terms below that are cut off one by one: two halves of the last place give nothing.
  const double half = std::ldexp(1, -13);
  EXPECT_EQ(std::bit_cast<float>(
                element_of_half_product({{half, half, -1}, {half, half, 1}, 0x3f800000}, false)),
            0.0f);
}

TEST(TensorRounding, SingleResultsAreTruncated) {
  const float below = std::ldexp(1.0f, -24);  // half of the last place of 1
  EXPECT_EQ(sum_of_products({below}, 1), 1.0f);
  EXPECT_EQ(sum_of_products({1.5 * below}, 1), 1.0f);
  EXPECT_EQ(sum_of_products({-1.5 * below}, -1), -1.0f);
  EXPECT_EQ(sum_of_products({below / 2}, -1), std::nextafterf(-1, 0));
}

// What an H200 computed for random registers (driver for CUDA 13.0, 2026-11-26). For each kind of
// product the file has its number below and a count of warps, then for each warp the registers of
// A, B, C and D, 32 words each.
TEST(TensorHardware, GivesTheBitsOfAnH200) {
  struct Kind {
    TensorType type;
    MmaShape shape;
    int a, b, c;
    bool half;
  };
  const Kind kinds[] = {{tf32, {16, 8, 8}, 4, 2, 4, false},  {tf32, {16, 8, 4}, 2, 1, 4, false},
                        {f16, {16, 8, 16}, 4, 2, 4, false},  {f16, {16, 8, 8}, 2, 1, 4, false},
                        {bf16, {16, 8, 16}, 4, 2, 4, false}, {bf16, {16, 8, 8}, 2, 1, 4, false},
                        {e4m3, {16, 8, 32}, 4, 2, 4, false}, {f16, {16, 8, 16}, 4, 2, 2, true}};
  std::ifstream file(assay::testing::source_dir() + "/tests/sim/math/h200_mma.bin",
                     std::ios::binary);
  const auto read = [&](int registers) {
    std::vector<Lanes32> lanes(static_cast<std::size_t>(registers), Lanes32{});
    for (Lanes32& r : lanes) file.read(reinterpret_cast<char*>(r.v), sizeof r.v);
    return lanes;
  };
  int elements = 0;
  for (std::int32_t head[2]; file.read(reinterpret_cast<char*>(head), sizeof head);) {
    const Kind& kind = kinds[head[0]];
    for (int w = 0; w < head[1]; ++w) {
      const auto a = read(kind.a), b = read(kind.b);
      const auto c = read(kind.c), expected = read(kind.c);
      std::vector<Lanes32> d(c.size(), Lanes32{});
      MmaRegisters<Lanes32> x;
      point(a, x.a);
      point(b, x.b);
      point(c, x.c);
      for (std::size_t r = 0; r < d.size(); ++r) x.d[r] = &d[r];
      MmaMode mode;
      mode.a = mode.b = kind.type;
      mode.half_c = mode.half_d = kind.half;
      find_mma32(kind.type, kind.shape)(x, mode);
      for (std::size_t r = 0; r < d.size(); ++r) {
        for (int lane = 0; lane < 32; ++lane, ++elements)
          ASSERT_EQ(d[r].v[lane], expected[r].v[lane]) << head[0] << ", warp " << w;
      }
    }
  }
  EXPECT_EQ(elements, 10 * 32 * (7 * 4 + 2));
}

TEST(TensorRounding, OverflowsAndNaNs) {
  const float infinity = std::numeric_limits<float>::infinity();
  // 65504 + 16 is the tie that rounds to infinity.
  EXPECT_EQ(element_of_half_product({{16}, {1}, 0x7bff}, true), 0x7c00u);
  EXPECT_EQ(element_of_half_product({{15.9921875}, {1}, 0x7bff}, true), 0x7bffu);
  EXPECT_EQ(element_of_half_product({{-60000}, {60000}, 0}, true), 0xfc00u);
  const auto c = std::bit_cast<std::uint32_t>(infinity);
  EXPECT_EQ(element_of_half_product({{-1}, {1}, c}, false), c);
  const auto nan = std::bit_cast<std::uint32_t>(-std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(element_of_half_product({{1}, {1}, nan}, false), 0x7fffffffu);
  EXPECT_EQ(element_of_half_product({{1}, {1}, 0xfe01}, true), 0x7fffu);
}

// D[0][0] of a product in which A has one element, with the given bits, and B is 1 there.
std::uint32_t times_one(TensorType type, MmaShape shape, std::uint32_t bits) {
  std::vector<Lanes32> a(4, Lanes32{}), b(2, Lanes32{}), d(4, Lanes32{});
  a[0].v[0] = bits;
  b[0].v[0] = encode(type, 1);
  MmaRegisters<Lanes32> x;
  point(a, x.a);
  point(b, x.b);
  point(d, x.c);
  for (std::size_t r = 0; r < d.size(); ++r) x.d[r] = &d[r];
  MmaMode mode;
  mode.a = mode.b = type;
  find_mma32(type, shape)(x, mode);
  return d[0].v[0];
}

TEST(TensorTypes, EveryHalf) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31),
              fraction = static_cast<int>(bits & 1023);
    float expected = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    if (exponent == 31) expected = std::numeric_limits<float>::infinity();
    if (bits >> 15 != 0) expected = -expected;
    if (expected == 0) expected = 0;  // -0 + 0
    const std::uint32_t result = times_one(f16, {16, 8, 8}, bits);
    ASSERT_EQ(result, exponent == 31 && fraction != 0 ? 0x7fffffffu
                                                      : std::bit_cast<std::uint32_t>(expected))
        << bits;
  }
}

TEST(TensorTypes, EveryByte) {
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    const bool negative = bits >> 7 != 0;
    {
      const int exponent = static_cast<int>(bits >> 3 & 15), fraction = static_cast<int>(bits & 7);
      float expected = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                     : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
      if (negative && expected != 0) expected = -expected;
      EXPECT_EQ(times_one(e4m3, {16, 8, 32}, bits),
                (bits & 127) == 127 ? 0x7fffffffu : std::bit_cast<std::uint32_t>(expected));
    }
    {
      const int exponent = static_cast<int>(bits >> 2 & 31), fraction = static_cast<int>(bits & 3);
      float expected = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -16)
                                     : std::ldexp(static_cast<float>(4 + fraction), exponent - 17);
      if (exponent == 31) expected = std::numeric_limits<float>::infinity();
      if (negative && expected != 0) expected = -expected;
      EXPECT_EQ(times_one(e5m2, {16, 8, 32}, bits), exponent == 31 && fraction != 0
                                                        ? 0x7fffffffu
                                                        : std::bit_cast<std::uint32_t>(expected));
    }
  }
}

TEST(TensorTypes, Tf32DropsTheLowerBits) {
  EXPECT_EQ(times_one(tf32, {16, 8, 8}, 0x3f801fffu), 0x3f800000u);
  EXPECT_EQ(times_one(tf32, {16, 8, 8}, 0x3f802000u), 0x3f802000u);
}

TEST(TensorShapes, OthersDoNotExist) {
  EXPECT_EQ(find_mma32(f16, {8, 8, 4}), nullptr);
  EXPECT_EQ(find_mma32(tf32, {16, 8, 16}), nullptr);
  EXPECT_EQ(find_mma32(f32, {16, 8, 8}), nullptr);
  EXPECT_EQ(find_mma64({16, 16, 4}), nullptr);
}

}  // namespace
}  // namespace assay::sim
