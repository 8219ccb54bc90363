#include "compare/showings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "boards.h"

namespace assay::compare {
namespace {

using testing::given_board;
using ::testing::IsEmpty;

class ShowingsTest : public ::testing::Test {
 protected:
  std::vector<Showing> of(const std::string& model,
                          const std::vector<testing::GivenScore>& scores) {
    board_ = given_board(scores);
    field_ = make_field(board_, specs_, Device::cpu);
    return Showings(field_, By::mean).of(field_, *field_.find(model));
  }

  const std::vector<ChallengeSpec> specs_ = testing::three_specs();
  Scoreboard board_;
  Field field_;
};

TEST_F(ShowingsTest, TheLargestLeadComesFirst) {
  const auto all = of("a", {{"a", 0, "", 50},
                            {"b", 0, "", 60},
                            {"c", 0, "", 80},
                            {"a", 1, "", 70},
                            {"b", 1, "", 40},
                            {"c", 1, "", 50}});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].challenge, 1U);
  EXPECT_DOUBLE_EQ(all[0].lead(), 25);
  EXPECT_EQ(all[0].place, 1U);
  EXPECT_EQ(all[1].challenge, 0U);
  EXPECT_DOUBLE_EQ(all[1].lead(), -20);
  EXPECT_EQ(all[1].place, 3U);
  EXPECT_EQ(all[1].models, 3U);
}

TEST_F(ShowingsTest, TheMedianIsOfTheOthers) {
  const auto all =
      of("d", {{"a", 0, "", 10}, {"b", 0, "", 20}, {"c", 0, "", 90}, {"d", 0, "", 20}});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_DOUBLE_EQ(all[0].others, 20);
  EXPECT_EQ(all[0].place, 2U);
}

TEST_F(ShowingsTest, OfTooFewOthersNothingIsSaid) {
  EXPECT_THAT(of("a", {{"a", 0, "", 50}, {"b", 0, "", 60}}), IsEmpty());
}

TEST_F(ShowingsTest, SeveralAttemptsCountByTheFigureAskedFor) {
  board_ = given_board({{"a", 0, "1", 40}, {"a", 0, "2", 60}, {"b", 0, "", 10}, {"c", 0, "", 30}});
  field_ = make_field(board_, specs_, Device::cpu);
  const Player& a = *field_.find("a");
  EXPECT_DOUBLE_EQ(Showings(field_, By::mean).of(field_, a).at(0).score, 50);
  EXPECT_DOUBLE_EQ(Showings(field_, By::best).of(field_, a).at(0).score, 60);
}

}  // namespace
}  // namespace assay::compare
