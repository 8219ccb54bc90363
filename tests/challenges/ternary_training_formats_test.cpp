// Blocks, plain and dense, the statistics of blocks, and the references of the optional functions,
// each checked against its description.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "challenges/ternary_training_case.h"

namespace assay::ternary_training {
namespace {

TEST(TernaryBlocks, ScalesRoundToTheNearestHalfPrecisionNumber) {
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const double a = half_value(static_cast<std::uint16_t>(bits)),
                 b = half_value(static_cast<std::uint16_t>(bits + 1));
    const double middle = (a + b) / 2;  // the tie goes to the even one
    EXPECT_EQ(half_bits(a), bits);
    EXPECT_EQ(half_bits(middle), bits + bits % 2);
    EXPECT_EQ(half_bits(std::nextafter(middle, 0)), bits);
    EXPECT_EQ(half_bits(std::nextafter(middle, 1e9)), bits + 1);
  }
  EXPECT_EQ(half_bits(1e300), 0x7bff);
}

TEST(TernaryBlocks, IllegalOnesAreRefused) {
  std::uint8_t block[34] = {0, 0x3c};
  double w[128];
  EXPECT_TRUE(decode_block(block, w));
  for (const auto& [byte, value] :
       std::map<int, int>{{5, 0x0c}, {1, 0xbc}, {1, 0x7c}, {1, 0x7e}, {33, 0xc0}}) {
    std::uint8_t bad[34];
    std::copy_n(block, 34, bad);
    bad[byte] = static_cast<std::uint8_t>(value);
    EXPECT_FALSE(decode_block(bad, w)) << byte;
  }
}

// The code of weight j in a dense block, read from where the format puts it: digit n of a byte is
// floor(3 u), after u, the byte as a fraction of 256, has been tripled n times modulo 1.
int dense_code(const std::uint8_t* block, int j) {
  int byte, digit;
  if (j < 80) {
    byte = j % 16, digit = j / 16;
  } else if (j < 120) {
    byte = 16 + j % 8, digit = (j - 80) / 8;
  } else {
    byte = 24 + j % 2, digit = (j - 120) / 2;
  }
  double u = block[byte] / 256.0;
  for (int i = 0; i < digit; ++i) u = u * 3 - std::floor(u * 3);
  return static_cast<int>(std::floor(u * 3));
}

TEST(TernaryDense, HoldsTheCodesWhereTheFormatHasThem) {
  for (const char* name : {"pack_dense", "dense_random"}) {
    Drawn drawn(subject().case_named(name), 4);
    const auto blocks = drawn.buffer(dense::kFrom).span<std::uint8_t>();
    const auto& packed = drawn.reference().bytes;
    ASSERT_EQ(packed.size() * 34, blocks.size() * 28);
    std::set<int> values;
    for (std::size_t b = 0; b < blocks.size() / 34; ++b) {
      const std::uint8_t *block = &blocks[b * 34], *dense = &packed[b * 28];
      EXPECT_EQ(dense[26], block[0]);
      EXPECT_EQ(dense[27], block[1]);
      for (int j = 0; j < 128; ++j) {
        ASSERT_EQ(dense_code(dense, j), block[2 + j / 4] >> (j % 4 * 2) & 3) << b << " " << j;
      }
      for (int m : {24, 25}) {  // the fifth digit
        const double u = dense[m] * 81 / 256.0;
        EXPECT_EQ(std::floor(3 * (u - std::floor(u))), 0);
      }
      values.insert(dense, dense + 24);
      std::uint8_t back[34];
      undense_block(dense, back);
      EXPECT_TRUE(std::equal(back, back + 34, block));
    }
    EXPECT_EQ(values.size(), 243u) << name;
  }
}

// Bytes computed by hand. All weights zero: 11111 in base 3 is 121, and 256 * 121 / 243 = 127.5;
// the last bytes have 11110, 120: 126.4. All weights positive: 242, 254.9; 240, 252.8.
TEST(TernaryDense, KnownBytes) {
  for (const auto& [code, byte, last] : {std::tuple{0, 0, 0}, {1, 128, 127}, {2, 255, 253}}) {
    std::uint8_t block[34] = {0x34, 0x12}, dense[28];
    std::fill(block + 2, block + 34, static_cast<std::uint8_t>(code * 0x55));
    dense_block(block, dense);
    for (int i = 0; i < 26; ++i) EXPECT_EQ(dense[i], i < 24 ? byte : last) << code << " " << i;
    EXPECT_EQ(dense[26], 0x34);
    EXPECT_EQ(dense[27], 0x12);
  }
}

double from_bf16(std::uint16_t bits) {
  const double magnitude =
      (bits >> 7 & 255) == 0 ? 0 : std::ldexp(128 + (bits & 127), (bits >> 7 & 255) - 134);
  return bits >> 15 ? -magnitude : magnitude;
}

TEST(TernaryBf16, ReferenceIsTheSumOfTheRoundedInputs) {
  const CaseSpec& c = subject().case_named("linear_bf16_odd");
  Drawn drawn(c, 8);
  const Shape s = shape_of(c);
  const auto& r = drawn.reference();
  const auto *x = drawn.buffer(linear::kX).as<std::uint16_t>(),
             *dy = drawn.buffer(linear::kDy).as<std::uint16_t>();
  Vector w;
  const auto blocks = drawn.buffer(linear::kBlocks).span<std::uint8_t>();
  for (std::size_t at = 0; at < blocks.size(); at += 34) {
    for (const double v : decode(&blocks[at])) w.push_back(v);
  }
  const auto M = static_cast<std::size_t>(s.call.M), N = static_cast<std::size_t>(s.call.rows),
             K = static_cast<std::size_t>(s.call.cols);
  const auto check = [&](const std::vector<Row>& rows, std::size_t row, std::size_t column,
                         double expected) {
    EXPECT_NEAR(rows[row].expected[column], expected, 1e-12 * (1 + std::abs(expected)));
    return rows[row].plain[column];
  };
  for (std::size_t m = 0; m < M; ++m) {
    for (std::size_t n = 0; n < N; n += 13) {
      double y = 0;
      for (std::size_t k = 0; k < K; ++k) y += from_bf16(x[m * K + k]) * w[n * K + k];
      const double plain = check(r.y, m, n, y);
      // Rounded to 8 bits.
      EXPECT_NEAR(plain, y, 0x1p-8 * std::abs(y));
      EXPECT_EQ(std::fmod(plain, std::ldexp(1, std::ilogb(plain) - 7)), 0);
    }
    for (std::size_t k = 0; k < K; k += 29) {
      double dx = 0;
      for (std::size_t n = 0; n < N; ++n) dx += from_bf16(dy[m * N + n]) * w[n * K + k];
      check(r.dx, m, k, dx);
    }
  }
  for (std::size_t n = 0; n < N; n += 17) {
    for (std::size_t k = 0; k < K; k += 31) {
      double dw = 0;
      for (std::size_t m = 0; m < M; ++m) dw += from_bf16(dy[m * N + n]) * from_bf16(x[m * K + k]);
      check(r.dw, n, k, dw);
    }
  }
}

// Counted over an array of all weights, by column and by row.
TEST(TernaryStatistics, AgreeWithADirectCount) {
  for (const char* name : {"counts", "counts_alone"}) {
    const CaseSpec& c = subject().case_named(name);
    const tt_config config = shape_of(c).call.config;
    Drawn drawn(c, 17);
    const auto blob = drawn.buffer(statistics::kBlob).span<std::uint8_t>(),
               earlier = drawn.buffer(statistics::kBefore).span<std::uint8_t>();
    const Vector now = decode_all(config, blob),
                 before = earlier.empty() ? now : decode_all(config, earlier);
    const int heads = config.Hq * config.hd, kv = config.Hkv * config.hd;
    std::vector<std::pair<int, int>> sizes{{config.V, config.d}};
    if (config.tied == 0) sizes.push_back(sizes[0]);
    for (int l = 0; l < config.L; ++l) {
      for (const auto& size : std::vector<std::pair<int, int>>{{heads, config.d},
                                                               {kv, config.d},
                                                               {kv, config.d},
                                                               {config.d, heads},
                                                               {config.ff, config.d},
                                                               {config.ff, config.d},
                                                               {config.d, config.ff}}) {
        sizes.push_back(size);
      }
    }
    const auto& counts = drawn.reference().counts;
    ASSERT_EQ(counts.size(), 7 * sizes.size()) << name;
    std::size_t from = 0, dead = 0, zero_scales = 0;
    for (std::size_t m = 0; m < sizes.size(); ++m) {
      const auto rows = static_cast<std::size_t>(sizes[m].first),
                 cols = static_cast<std::size_t>(sizes[m].second);
      std::array<std::int64_t, 7> n{};
      for (std::size_t i = from; i < from + rows * cols; ++i) {
        n[0] += now[i]<0, n[1] += now[i] == 0, n[2] += now[i]> 0;
        n[6] += now[i] * before[i] < 0;
        n[5] += now[i] * before[i] < 0 || (now[i] == 0) != (before[i] == 0);
      }
      for (std::size_t r = 0; r < rows; ++r) {
        bool zero = true;
        for (std::size_t k = 0; k < cols; ++k) zero = zero && now[from + r * cols + k] == 0;
        n[3] += zero;
      }
      for (std::size_t k = 0; k < cols; ++k) {
        bool zero = true;
        for (std::size_t r = 0; r < rows; ++r) zero = zero && now[from + r * cols + k] == 0;
        n[4] += zero;
      }
      for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(counts[m * 7 + i], n[i]) << m << " " << i;
      EXPECT_EQ(n[5] > 0, !earlier.empty());
      dead += static_cast<std::size_t>(n[3] > 0 && n[4] > 0);
      from += rows * cols;
    }
    EXPECT_EQ(dead, sizes.size());
    for (std::size_t i = 0; i < from / 128; ++i)
      zero_scales += blob[i * 34] == 0 && blob[i * 34 + 1] == 0;
    EXPECT_GT(zero_scales, 20u);
  }
}

// Another form of the loss, temperature^2 (log Z_s - log Z_t) + temperature sum p (t - s), and
// central differences of it.
TEST(TernaryDistillation, IsTheDivergenceAndItsGradient) {
  const CaseSpec& c = subject().case_named("distill");
  const Shape s = shape_of(c);
  Drawn drawn(c, 6);
  const auto& r = drawn.reference();
  const auto V = static_cast<std::size_t>(s.call.cols);
  const double tau = static_cast<double>(s.call.temperature);
  for (std::size_t m = 0; m < static_cast<std::size_t>(s.call.M); m += 5) {
    const float *t = drawn.buffer(distill::kTeacher).as<float>() + m * V,
                *z = drawn.buffer(distill::kStudent).as<float>() + m * V;
    Vector student(z, z + V);
    const auto loss = [&] {
      double zt = 0, zs = 0, cross = 0;
      for (std::size_t v = 0; v < V; ++v) {
        const double weight = std::exp(static_cast<double>(t[v]) / tau);
        zt += weight;
        zs += std::exp(student[v] / tau);
        cross += weight * (static_cast<double>(t[v]) - student[v]);
      }
      return tau * tau * (std::log(zs) - std::log(zt)) + tau * cross / zt;
    };
    EXPECT_NEAR(r.loss[m].expected[0], loss(), 1e-10);
    for (std::size_t v = 0; v < V; v += 37) {
      const double old = student[v], h = 1e-4;
      student[v] = old + h;
      const double up = loss();
      student[v] = old - h;
      const double down = loss();
      student[v] = old;
      EXPECT_NEAR(r.gradient[m].expected[v], (up - down) / (2 * h), 1e-8);
    }
  }
}

}  // namespace
}  // namespace assay::ternary_training
