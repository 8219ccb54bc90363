#include "draw/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "assay/error.h"
#include "support/bare_challenge.h"

namespace assay::draw {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const json kRange{{"from", 3}, {"to", 100}};

RandomSpace space_of(std::vector<Axis> axes) {
  RandomSpace space;
  space.axes = std::move(axes);
  return space;
}

// Accepts only even numbers.
class Even : public BareChallenge {
 public:
  std::optional<DrawnCase> drawn(const json& draw) const override {
    if (draw.at("n").get<int>() % 2 != 0) return std::nullopt;
    return DrawnCase{draw, draw.at("n") == 0 ? 1 : 0};
  }
};

TEST(Draw, FollowsFromTheSeedAlone) {
  const RandomSpace space =
      space_of({{.name = "a", .choices = {kRange}}, {.name = "b", .choices = {1, "x", nullptr}}});
  EXPECT_EQ(draw(space, 5, false), draw(space, 5, false));
  std::set<std::string> all;
  for (std::uint64_t seed = 0; seed < 50; ++seed) all.insert(draw(space, seed, false).dump());
  EXPECT_GT(all.size(), 20u);
}

TEST(Draw, TakesEveryChoiceAndBothEndsOfARange) {
  const RandomSpace space = space_of({{.name = "a", .choices = {1, json{{"from", 5}, {"to", 7}}}}});
  std::map<json, int> seen;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) ++seen[draw(space, seed, false).at("a")];
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_NEAR(seen[1], 1000, 120);
  EXPECT_GT(seen[5], seen[7]) << "small distances are likelier";
  EXPECT_GT(seen[7], 50);
}

TEST(Draw, RareChoicesAreForFuzzingAndTheUsualOneIsUsual) {
  const RandomSpace space = space_of({{.name = "a", .choices = {1}, .rare = {2}},
                                      {.name = "b", .choices = {0, 1, 2}, .usual = 0.9}});
  int rare = 0, usual = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    EXPECT_EQ(draw(space, seed, false).at("a"), 1);
    rare += draw(space, seed, true).at("a") == 2 ? 1 : 0;
    usual += draw(space, seed, false).at("b") == 0 ? 1 : 0;
  }
  EXPECT_NEAR(rare, 200, 60);
  EXPECT_NEAR(usual, 933, 40);
}

TEST(Simpler, AreEarlierChoicesAndSmallerNumbers) {
  const Axis axis{.name = "a", .choices = {7, "x", kRange}, .rare = {"rare"}};
  EXPECT_THAT(simpler(axis, 7), IsEmpty());
  EXPECT_THAT(simpler(axis, "x"), ElementsAre(7));
  EXPECT_THAT(simpler(axis, 4), ElementsAre(7, "x", 3));
  EXPECT_THAT(simpler(axis, 3), ElementsAre(7, "x"));
  EXPECT_THAT(simpler(axis, 43), ElementsAre(7, "x", 3, 23, 33, 38, 41, 42));
  EXPECT_THAT(simpler(axis, "rare"), ElementsAre(7, "x", 3));
}

TEST(CaseOf, MergesTheBaseAndTakesTheFailingAllocation) {
  RandomSpace space = space_of({{.name = "n", .choices = {2}}});
  space.base = {{"fixed", true}};
  CaseSpec placeholder;
  placeholder.name = "random_3";
  const auto spec = case_of(Even(), space, placeholder, {{"n", 4}, {kFailingAllocation, 2}});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->name, "random_3");
  EXPECT_EQ(spec->params, (json{{"fixed", true}, {"n", 4}}));
  EXPECT_EQ(spec->failing_allocation, 2u);
  EXPECT_FALSE(case_of(Even(), space, placeholder, {{"n", 3}}));
  const auto invalid = case_of(Even(), space, placeholder, {{"n", 0}, {kFailingAllocation, 2}});
  ASSERT_TRUE(invalid);
  EXPECT_EQ(invalid->expect_status, 1);
  EXPECT_EQ(invalid->failing_allocation, 0u) << "what must fail has nothing to run out of";
}

TEST(DrawCase, DrawsAgainUntilItIsACase) {
  const RandomSpace space = space_of({{.name = "n", .choices = {1, 3, 5, 7, 2}}});
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(draw_case(Even(), space, {}, seed, false).spec.params.at("n"), 2);
  EXPECT_THROW(draw_case(Even(), space_of({{.name = "n", .choices = {1}}}), {}, 1, false), Error);
}

TEST(DrawCase, EachPlaceholderOfARunHasADrawOfItsOwn) {
  ChallengeSpec spec;
  spec.name = "even";
  spec.random = space_of({{.name = "n", .choices = {json{{"from", 0}, {"to", 1'000'000}}}}});
  CaseSpec one, two;
  one.name = "random_1";
  two.name = "random_2";
  const json drawn = draw_case(Even(), spec, one, 7).draw;
  EXPECT_EQ(draw_case(Even(), spec, one, 7).draw, drawn);
  EXPECT_NE(draw_case(Even(), spec, two, 7).draw, drawn);
  EXPECT_NE(draw_case(Even(), spec, one, 8).draw, drawn);
}

TEST(CheckNames, RejectsAnAxisThatTheSpaceHasNot) {
  const RandomSpace space = space_of({{.name = "rows", .choices = {1}}});
  EXPECT_NO_THROW(check_names(space, {{"rows", 2}, {kFailingAllocation, 1}}));
  EXPECT_THROW(check_names(space, {{"rosw", 2}}), Error);
}

}  // namespace
}  // namespace assay::draw
