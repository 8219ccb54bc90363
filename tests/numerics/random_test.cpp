#include "assay/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "assay/dtype.h"
#include "assay/parallel.h"

namespace assay {
namespace {

struct Moments {
  double mean = 0, variance = 0;
};

template <class T>
Moments moments(const std::vector<T>& values) {
  Moments m;
  for (const double v : values) m.mean += v;
  m.mean /= static_cast<double>(values.size());
  for (const double v : values) m.variance += (v - m.mean) * (v - m.mean);
  m.variance /= static_cast<double>(values.size());
  return m;
}

TEST(Random, TheSequenceIsThatOfSplitMix64) {
  // The first values of the published generator for the seed 1234567.
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317ull);
  EXPECT_EQ(random.next(), 3203168211198807973ull);
  EXPECT_EQ(random.next(), 9817491932198370423ull);
}

TEST(Random, UniformNumbersFillTheirInterval) {
  Random random(1);
  std::vector<double> values(100000);
  for (double& v : values) v = random.uniform(-2, 6);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*least, -2);
  EXPECT_LT(*most, 6);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 2, 0.03);
  EXPECT_NEAR(m.variance, 64.0 / 12, 0.1);
}

TEST(Random, BelowIsUniformAndNeverReachesItsBound) {
  Random random(2);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts.at(static_cast<std::size_t>(random.below(7)));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.below(1), 0);
}

TEST(Random, NormalNumbersHaveTheirMomentsAndTails) {
  Random random(3);
  std::vector<double> values(200000);
  int beyond_three = 0;
  for (double& v : values) {
    v = random.normal();
    ASSERT_TRUE(std::isfinite(v));
    beyond_three += std::abs(v) > 3;
  }
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 0, 0.01);
  EXPECT_NEAR(m.variance, 1, 0.02);
  EXPECT_NEAR(beyond_three, 540, 120);  // 0.27 %
}

TEST(Random, SubstreamsOfOneSeedDiffer) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    for (std::uint64_t stream = 0; stream < 30; ++stream) seeds.insert(substream(seed, stream));
  }
  EXPECT_EQ(seeds.size(), 900u);
}

TEST(Fill, NormalValuesHaveTheMomentsAskedFor) {
  std::vector<float> values(400000);
  fill_normal(values, 4, 5, 0.5f);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 5, 0.005);
  EXPECT_NEAR(m.variance, 0.25, 0.002);
  for (const float v : values) ASSERT_LT(std::abs(v - 5), 0.5f * 3.47f);
}

TEST(Fill, UniformValuesStayInsideTheirInterval) {
  std::vector<float> values(400000);
  fill_uniform(values, 5, 1, 3);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 2, 0.005);
  EXPECT_NEAR(m.variance, 4.0 / 12, 0.003);
  for (const float v : values) ASSERT_TRUE(v >= 1 && v < 3) << v;
}

TEST(Fill, Bf16IsTheRoundedFp32) {
  std::vector<float> wide(1000);
  std::vector<std::uint16_t> narrow(1000);
  fill_normal(wide, 6, 1, 2);
  fill_normal_bf16(narrow, 6, 1, 2);
  for (std::size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(narrow[i], float_to_bf16(wide[i]));
}

// Compared with the same arithmetic in Python, every operation rounded to fp32 separately: no
// machine may fuse two of them.
TEST(Fill, BytesAreTheSameOnEveryMachine) {
  std::vector<float> values(1000);
  fill_normal(values, 7, 1.1f, 2.3f);
  std::uint64_t digest = 0;
  for (const float v : values) digest = mix64(digest ^ std::bit_cast<std::uint32_t>(v));
  EXPECT_EQ(digest, 0xba66b6fe06853cc3u);
}

TEST(Fill, AnElementDependsOnSeedAndIndexAlone) {
  std::vector<float> all(300000), some(1000), parallel(300000), other(1000);
  set_parallel_threads(1);
  fill_normal(all, 7);
  fill_normal(some, 7);
  set_parallel_threads(3);
  fill_normal(parallel, 7);
  set_parallel_threads(0);
  fill_normal(other, 8);
  EXPECT_EQ(all, parallel);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
  EXPECT_FALSE(std::equal(some.begin(), some.end(), other.begin()));
}

}  // namespace
}  // namespace assay
