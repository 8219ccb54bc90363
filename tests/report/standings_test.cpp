#include "report/standings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../compare/boards.h"

namespace assay::report {
namespace {

using ::testing::ElementsAre;
using testing::given_board;
using testing::GivenScore;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class StandingsTest : public ::testing::Test {
 protected:
  const Standings& make(const std::vector<GivenScore>& scores, compare::By by = compare::By::mean) {
    board_ = given_board(scores);
    for (const char* model : references_) board_.models[model].sample = true;
    all_ = make_standings(board_, specs_, Device::cpu, by);
    return all_;
  }
  std::vector<std::string> order() const {
    std::vector<std::string> models;
    for (const Standing& s : all_.models) models.push_back(s.model);
    return models;
  }
  const Standing& of(const std::string& model) const {
    return *std::ranges::find(all_.models, model, &Standing::model);
  }

  const std::vector<ChallengeSpec> specs_ = testing::three_specs();
  std::vector<const char*> references_;
  Scoreboard board_;
  Standings all_;
};

std::vector<GivenScore> everywhere(const char* model, double total, double half = 1) {
  return {{model, 0, "", total, half}, {model, 1, "", total, half}, {model, 2, "", total, half}};
}

std::vector<GivenScore> operator+(std::vector<GivenScore> a, const std::vector<GivenScore>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(StandingsTest, WhoIsClearlyBetterRanksHigherAndOthersAreTied) {
  make(everywhere("low", 20) + everywhere("high", 90) + everywhere("near", 89, 5));
  EXPECT_THAT(order(), ElementsAre("high", "near", "low"));
  EXPECT_EQ(of("high").rank, 1);
  EXPECT_EQ(of("near").rank, 1);
  EXPECT_TRUE(of("high").tied && of("near").tied);
  EXPECT_EQ(of("low").rank, 3);
  EXPECT_FALSE(of("low").tied);
  EXPECT_NEAR(*of("low").average, 20, 1e-9);
}

TEST_F(StandingsTest, AveragesOverDifferentChallengesAreNotRanked) {
  make(everywhere("whole", 40) + std::vector<GivenScore>{{"part", 0, "", 99}, {"part", 1, "", 99}});
  EXPECT_THAT(order(), ElementsAre("whole", "part"));
  EXPECT_TRUE(of("whole").complete);
  EXPECT_FALSE(of("part").complete);
  EXPECT_EQ(of("part").rank, 0);
  EXPECT_EQ(of("part").attempted, 2);
  ASSERT_EQ(left_out(all_, of("part")).size(), 1u);
  EXPECT_EQ(left_out(all_, of("part"))[0]->name, "third");
  EXPECT_THAT(left_out(all_, of("whole")), IsEmpty());
}

TEST_F(StandingsTest, AReferenceIsShownLastAndTakesNoPlace) {
  references_ = {"shipped"};
  make(everywhere("shipped", 95) + everywhere("model", 50));
  EXPECT_THAT(order(), ElementsAre("model", "shipped"));
  EXPECT_EQ(of("model").rank, 1);
  EXPECT_EQ(of("shipped").rank, 0);
}

TEST_F(StandingsTest, TheAverageIsByTheFigureThatIsAskedFor) {
  const std::vector<GivenScore> attempts{
      {"m", 0, "1", 10}, {"m", 0, "2", 30}, {"m", 1, "", 50}, {"m", 2, "", 50}};
  make(attempts, compare::By::best);
  EXPECT_NEAR(*of("m").average, (30 + 50 + 50) / 3.0, 1e-9);
  make(attempts, compare::By::first);
  EXPECT_NEAR(*of("m").average, (10 + 50 + 50) / 3.0, 1e-9);
  make(attempts);
  EXPECT_NEAR(*of("m").average, (20 + 50 + 50) / 3.0, 1e-9);
  EXPECT_NEAR(*of("m").best, (30 + 50 + 50) / 3.0, 1e-9);
}

TEST_F(StandingsTest, RecordsAreOverWhatBothAttempted) {
  make(everywhere("high", 90) + std::vector<GivenScore>{{"low", 0, "", 10}, {"low", 1, "", 10}});
  EXPECT_EQ(of("high").record.wins, 2);
  EXPECT_EQ(of("low").record.losses, 2);
  EXPECT_EQ(all_.met, 2u);
  ASSERT_TRUE(of("high").strength && of("low").strength);
  EXPECT_GT(of("high").strength->value, of("low").strength->value);
}

TEST_F(StandingsTest, ASubsetIsRankedAmongAllWhoAttemptedIt) {
  make(everywhere("whole", 40) +
       std::vector<GivenScore>{{"part", 0, "", 99, 1}, {"part", 1, "", 99, 1}});
  const std::vector<SubsetRanking> rankings = subset_rankings(all_, 5);
  ASSERT_EQ(rankings.size(), 1u);
  EXPECT_THAT(rankings[0].challenges, ElementsAre(0u, 1u));
  ASSERT_EQ(rankings[0].places.size(), 2u);
  EXPECT_EQ(rankings[0].places[0].standing->model, "part");
  EXPECT_EQ(rankings[0].places[0].rank, 1);
  EXPECT_EQ(rankings[0].places[1].rank, 2);
  EXPECT_THAT(subset_rankings(all_, 0), IsEmpty());
}

TEST_F(StandingsTest, APlaceSaysHowFarItCanBeCompared) {
  make(std::vector<GivenScore>{{"m", 0, "1", 10}, {"m", 0, "2", 30}, {"m", 1, "", 50}});
  const std::string text = place_among_others(all_, "m", "first");
  EXPECT_THAT(text, HasSubstr("attempts: 2"));
  EXPECT_THAT(text, HasSubstr("over 2 of 3 challenges, without The third"));
  EXPECT_THAT(place_among_others(all_, "m", "second"), Not(HasSubstr("attempts:")));
  EXPECT_EQ(place_among_others(all_, "nobody", "first"), "");
}

TEST(ClearlyAbove, IsByMoreThanTheTablesShow) {
  EXPECT_TRUE(clearly_above({.low = 2, .high = 3}, {.low = 0, .high = 1}));
  EXPECT_FALSE(clearly_above({.low = 1, .high = 3}, {.low = 0, .high = 1}));
  EXPECT_FALSE(clearly_above({.low = 0, .high = 3}, {.low = 1, .high = 2}));
}

TEST_F(StandingsTest, LeadersAreComparedAmongThemselvesAndOthersWithTheirNeighbour) {
  std::vector<GivenScore> scores;
  const std::vector<const char*> models{"a", "b", "c", "d", "e", "f"};
  for (std::size_t i = 0; i < models.size(); ++i)
    scores = scores + everywhere(models[i], 90 - 10 * static_cast<double>(i));
  std::string pairs;
  for (const auto& [better, worse] : pairs_that_matter(make(scores)))
    pairs += better->model + worse->model + " ";
  EXPECT_EQ(pairs, "ab ac ad bc bd cd de ef ");
}

}  // namespace
}  // namespace assay::report
