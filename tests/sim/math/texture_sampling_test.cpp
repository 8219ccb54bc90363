#include "sim/math/texture_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace assay::sim {
namespace {

using enum TextureDescriptor::Edge;
using testing::ElementsAre;

constexpr std::int64_t kBorder = TexelPair::kBorder;

std::vector<std::int64_t> texels(TextureDescriptor::Edge edge, bool normalized,
                                 const std::vector<double>& x) {
  std::vector<std::int64_t> out;
  for (const double v : x) out.push_back(sample(v, 4, edge, normalized, false).at[0]);
  return out;
}

// Texel i covers [i, i + 1).
TEST(TextureSampling, ATexelIsTheFloorOfItsCoordinate) {
  EXPECT_THAT(texels(clamp, false, {0, 0.99, 1, 2.5, 3.999}), ElementsAre(0, 0, 1, 2, 3));
  EXPECT_THAT(texels(clamp, true, {0, 0.249, 0.25, 0.99}), ElementsAre(0, 0, 1, 3));
}

TEST(TextureSampling, BeyondTheEdge) {
  const std::vector<double> x{-5, -1, -0.1, 4, 5, 9};
  EXPECT_THAT(texels(clamp, false, x), ElementsAre(0, 0, 0, 3, 3, 3));
  EXPECT_THAT(texels(border, false, x),
              ElementsAre(kBorder, kBorder, kBorder, kBorder, kBorder, kBorder));
  EXPECT_THAT(texels(wrap, false, x), ElementsAre(0, 0, 0, 3, 3, 3)) << "only normalized repeats";
  EXPECT_THAT(texels(mirror, false, x), ElementsAre(0, 0, 0, 3, 3, 3));
}

TEST(TextureSampling, RepeatedTextures) {
  // Quarters: texels -5 to 8.
  std::vector<double> x;
  for (int i = -5; i <= 8; ++i) x.push_back(0.25 * i);
  EXPECT_THAT(texels(wrap, true, x), ElementsAre(3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0));
  EXPECT_THAT(texels(mirror, true, x), ElementsAre(3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0));
}

TEST(TextureSampling, CoordinatesFromAnywhere) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(texels(clamp, false, {-kInfinity, kInfinity, 1e300, std::nan("")}),
              ElementsAre(0, 3, 3, 0));
  const TexelPair pair = sample(kInfinity, 4, clamp, false, true);
  EXPECT_THAT(pair.at, ElementsAre(3, 3));
  EXPECT_EQ(pair.second, 0.0f);
}

// The centre of texel i is i + 0.5: nothing of its neighbours counts there.
TEST(TextureSampling, LinearFilteringWeighsTwoNeighbours) {
  TexelPair pair = sample(1.5, 4, clamp, false, true);
  EXPECT_EQ(pair.at[0], 1);
  EXPECT_EQ(pair.second, 0.0f);
  pair = sample(1.75, 4, clamp, false, true);
  EXPECT_THAT(pair.at, ElementsAre(1, 2));
  EXPECT_EQ(pair.second, 0.25f);
  pair = sample(0.25, 4, clamp, false, true);
  EXPECT_THAT(pair.at, ElementsAre(0, 0)) << "texel -1 is texel 0";
  EXPECT_EQ(pair.second, 0.75f);
  pair = sample(0.25, 4, border, false, true);
  EXPECT_THAT(pair.at, ElementsAre(kBorder, 0));
  pair = sample(0.0, 4, wrap, true, true);
  EXPECT_THAT(pair.at, ElementsAre(3, 0));
  EXPECT_EQ(pair.second, 0.5f);
}

TEST(TextureSampling, AWeightHasEightBits) {
  EXPECT_EQ(sample(1.5 + 0.3, 4, clamp, false, true).second, 77.0f / 256);
  EXPECT_EQ(sample(1.5 + 1.0 / 1024, 4, clamp, false, true).second, 0.0f);
  const TexelPair almost = sample(2.5 - 1.0 / 1024, 4, clamp, false, true);
  EXPECT_EQ(almost.at[0], 2);
  EXPECT_EQ(almost.second, 0.0f);
}

}  // namespace
}  // namespace assay::sim
