// Intervals, pass@k, fast_p and strengths against closed forms, enumeration and known values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "assay/error.h"
#include "assay/random.h"
#include "boards.h"
#include "compare/bootstrap.h"
#include "compare/bradley_terry.h"
#include "compare/fast_p.h"
#include "compare/pass_at_k.h"

namespace assay::compare {
namespace {

using testing::given_board;
using testing::three_specs;

Estimate exact(double v) { return {v, {v, v}}; }

// --- bootstrap -----------------------------------------------------------------

TEST(Bootstrap, OneAttemptEachIsTheMeanOfTheEnds) {
  const Estimate e = mean_over_cells({{{80, {78, 83}}}, {}, {{60, {60, 61}}}});
  EXPECT_DOUBLE_EQ(e.value, 70);
  EXPECT_DOUBLE_EQ(e.interval.low, 69);
  EXPECT_DOUBLE_EQ(e.interval.high, 72);
}

TEST(Bootstrap, OfManyAttemptsItIsThatOfTheCentralLimitTheorem) {
  Random random(3);
  std::vector<Estimate> attempts;
  double mean = 0, squares = 0;
  constexpr int kCount = 60;
  for (int i = 0; i < kCount; ++i) attempts.push_back(exact(50 + 8 * random.normal()));
  for (const Estimate& a : attempts) mean += a.value / kCount;
  for (const Estimate& a : attempts) squares += (a.value - mean) * (a.value - mean);
  const double half = 1.96 * std::sqrt(squares / (kCount - 1) / kCount);
  const Estimate e = mean_over_cells({attempts});
  EXPECT_NEAR(e.value, mean, 1e-9);
  EXPECT_NEAR(e.interval.low, mean - half, 0.12 * half);
  EXPECT_NEAR(e.interval.high, mean + half, 0.12 * half);
}

// Two attempts, d apart: the mean of a resample deviates by 0 or d / 2, times sqrt(2).
TEST(Bootstrap, OfTwoAttemptsIsWidenedForItsSmallSample) {
  const Estimate e = mean_over_cells({{exact(40), exact(60)}});
  EXPECT_DOUBLE_EQ(e.value, 50);
  EXPECT_NEAR(e.interval.low, 50 - 10 * std::sqrt(2), 1e-9);
  EXPECT_NEAR(e.interval.high, 50 + 10 * std::sqrt(2), 1e-9);
}

// All attempts move together: the interval of the mean is as wide as theirs, not narrower.
TEST(Bootstrap, TimingsOfAllAttemptsAreDrawnTogether) {
  const Estimate e = mean_over_cells({{{50, {48, 52}}, {50, {48, 52}}}, {{50, {48, 52}}}});
  EXPECT_NEAR(e.interval.low, 48, 0.15);
  EXPECT_NEAR(e.interval.high, 52, 0.15);
}

TEST(Bootstrap, IsTheSameEveryTime) {
  const std::vector<std::vector<Estimate>> cells{{{40, {39, 42}}, exact(60)},
                                                 {exact(10), exact(20)}};
  EXPECT_EQ(mean_over_cells(cells).interval.low, mean_over_cells(cells).interval.low);
  EXPECT_THROW(mean_over_cells({{}, {}}), std::invalid_argument);
}

TEST(Bootstrap, DifferencesAddTheirHalvesAsRightAnglesDo) {
  const Estimate d = difference({80, {77, 84}}, {70, {68, 74}});
  EXPECT_DOUBLE_EQ(d.value, 10);
  EXPECT_DOUBLE_EQ(d.interval.low, 10 - 5);  // 3 below, 4 above
  EXPECT_DOUBLE_EQ(d.interval.high, 10 + std::hypot(4, 2));
}

TEST(Bootstrap, WilsonHasItsPublishedValues) {
  const Interval i = wilson(8, 10);  // Brown, Cai and DasGupta 2001: 0.490 to 0.943
  EXPECT_NEAR(i.low, 0.490, 5e-4);
  EXPECT_NEAR(i.high, 0.943, 5e-4);
  EXPECT_DOUBLE_EQ(wilson(0, 7).low, 0);
  EXPECT_DOUBLE_EQ(wilson(7, 7).high, 1);
  EXPECT_GT(wilson(0, 7).high, 0.3);
}

// --- pass@k --------------------------------------------------------------------

// The share of all ways to choose k of n attempts that contain a success.
double by_enumeration(unsigned n, unsigned c, unsigned k) {
  double hits = 0, all = 0;
  for (unsigned chosen = 0; chosen < 1u << n; ++chosen) {
    if (std::popcount(chosen) != static_cast<int>(k)) continue;
    ++all;
    hits += (chosen & ((1u << c) - 1)) != 0 ? 1 : 0;
  }
  return hits / all;
}

TEST(PassAtK, IsThatOfEnumeration) {
  for (unsigned n = 1; n <= 9; ++n) {
    for (unsigned c = 0; c <= n; ++c) {
      for (unsigned k = 1; k <= n; ++k)
        EXPECT_NEAR(pass_at_k(n, c, k), by_enumeration(n, c, k), 1e-12) << n << c << k;
    }
  }
  EXPECT_NEAR(pass_at_k(100000, 1, 50000), 0.5, 1e-9);
  EXPECT_THROW(pass_at_k(3, 1, 4), std::invalid_argument);
}

Field field_of(const Scoreboard& board) {
  static const std::vector<ChallengeSpec> kSpecs = three_specs();
  return make_field(board, kSpecs, Device::cpu);
}

TEST(PassAtK, OfAModelIsTheMeanOverChallenges) {
  const Scoreboard board = given_board({{"m", 0, "1", 90},
                                        {"m", 0, "2", 40, 0, Verdict::wrong_answer},
                                        {"m", 0, "3", 40, 0, Verdict::wrong_answer},
                                        {"m", 1, "", 95}});
  const Field field = field_of(board);
  const auto once = pass_rate(field.players[0], goal_from("correct"), 1);
  EXPECT_NEAR(once->value, (1.0 / 3 + 1) / 2, 1e-12);
  EXPECT_EQ(once->challenges, 2u);
  EXPECT_LT(once->interval->low, once->value);
  EXPECT_GT(once->interval->high, once->value);
  const auto twice = pass_rate(field.players[0], goal_from("correct"), 2);
  EXPECT_NEAR(twice->value, 2.0 / 3, 1e-12);
  EXPECT_EQ(twice->left_out, 1u);
  EXPECT_TRUE(twice->interval.has_value());
  const auto thrice = pass_rate(field.players[0], goal_from("correct"), 3);
  EXPECT_EQ(thrice->value, 1);
  EXPECT_FALSE(thrice->interval.has_value());  // nothing to resample
  EXPECT_FALSE(pass_rate(field.players[0], goal_from("correct"), 4).has_value());
  // A verdict that none of them has. That could be by chance.
  const auto never = pass_rate(field.players[0], goal_from("RE"), 2);
  EXPECT_EQ(never->value, 0);
  const double once_high = wilson(0, 3).high;
  EXPECT_NEAR(never->interval->high, 1 - (1 - once_high) * (1 - once_high), 1e-12);
  EXPECT_EQ(solved_challenges(field.players[0], goal_from("correct")), 2u);
}

TEST(Goals, AreNamed) {
  const BoardRow row = testing::given_row({"m", 0, "", 79.9, 0, Verdict::wrong_answer},
                                          three_specs()[0], Device::cpu);
  EXPECT_FALSE(goal_from("correct").reached(row));
  EXPECT_TRUE(goal_from("built").reached(row));
  EXPECT_TRUE(goal_from("core").reached(row));
  EXPECT_TRUE(goal_from("WA").reached(row));
  EXPECT_FALSE(goal_from("score>=80").reached(row));
  EXPECT_TRUE(goal_from("score>=79.9").reached(row));
  for (const char* wrong : {"", "right", "score>=", "score>=101", "score>=x"})
    EXPECT_THROW(goal_from(wrong), Error) << wrong;
}

// --- fast_p --------------------------------------------------------------------

TEST(FastP, CountsAttemptsThatAreCorrectAndFaster) {
  const Scoreboard board = given_board({{"m", 0, "1", 90, 0, Verdict::ok, {}, 1.2},
                                        {"m", 0, "2", 90, 0, Verdict::ok, {}, 0.5},
                                        {"m", 1, "", 50, 0, Verdict::wrong_answer, {}, 3.0},
                                        {"m", 2, "", 80}});
  const Field field = field_of(board);
  const Player& m = field.players[0];
  EXPECT_NEAR(fast_p(m, Device::cpu, Reference::par, 1)->value, 0.5 / 3, 1e-12);
  EXPECT_NEAR(fast_p(m, Device::cpu, Reference::par, 0)->value, 1.0 / 3, 1e-12);
  EXPECT_NEAR(fast_p(m, Device::cpu, Reference::par, 1.2)->value, 0, 1e-12);  // more than p times
  EXPECT_NEAR(fast_p(m, Device::cpu, Reference::naive, 2)->value, 0.5 / 3, 1e-12);
  EXPECT_FALSE(fast_p(m, Device::cpu, Reference::floor, 1).has_value());
  const auto mean = mean_speed(m, Reference::par);  // the best correct one of each challenge
  EXPECT_EQ(mean->answers, 1u);
  EXPECT_NEAR(mean->speed.value, 1.2, 1e-12);
  EXPECT_NEAR(mean->speed.interval.low, 0.9 * 1.2, 1e-12);
}

TEST(FastP, OnTheSimulatorTheReferenceIsTheFloor) {
  static const std::vector<ChallengeSpec> kSpecs = three_specs();
  const Scoreboard board = given_board({{"m", 0, "", 90, 0, Verdict::ok, {}, 0.25}}, Device::sim);
  const Field field = make_field(board, kSpecs, Device::sim);
  EXPECT_FALSE(fast_p(field.players[0], Device::sim, Reference::par, 0.1).has_value());
  EXPECT_EQ(fast_p(field.players[0], Device::sim, Reference::floor, 0.2)->value, 1);
}

TEST(FastP, OnTheSimulatorParIsKnownWhereAKernelIs) {
  BoardRow row;
  row.key.device = Device::sim;
  row.score.speeds = {{.case_name = "a",
                       .ratio_to_par = 0.5,
                       .ratio_interval = {0.5, 0.5},
                       .ratio_to_naive = 8,
                       .ratio_to_floor = 0.25}};
  EXPECT_NEAR(speed_against(row, Reference::floor)->value, 0.25, 1e-12);
  EXPECT_NEAR(speed_against(row, Reference::floor)->interval.high, 0.25, 1e-12);
  EXPECT_NEAR(speed_against(row, Reference::naive)->value, 8, 1e-12);
  EXPECT_NEAR(speed_against(row, Reference::par)->value, 0.5, 1e-12);
  row.score.speeds[0].ratio_to_par = 0.25;  // limited by the floor itself
  EXPECT_FALSE(speed_against(row, Reference::par).has_value());
}

TEST(FastP, OnTheCpuTheFloorIsKnownWhereItWasMeasured) {
  static const std::vector<ChallengeSpec> kSpecs = three_specs();
  Scoreboard board = given_board({{"m", 0, "", 90, 0, Verdict::ok, {}, 0.5}});
  for (auto& [key, row] : board.entries) row.score.speeds[0].ratio_to_floor = 0.4;
  const Field field = make_field(board, kSpecs, Device::cpu);
  EXPECT_EQ(fast_p(field.players[0], Device::cpu, Reference::floor, 0.3)->value, 1);
  EXPECT_EQ(fast_p(field.players[0], Device::cpu, Reference::floor, 0.5)->value, 0);
  EXPECT_NEAR(mean_speed(field.players[0], Reference::floor)->speed.value, 0.4, 1e-12);
}

// --- Bradley and Terry -------------------------------------------------------------

// At the most likely strengths, everybody's expected wins equal the actual ones; the phantom counts
// as one tie.
void expect_stationary(const std::vector<Strength>& all, const std::vector<Game>& games) {
  std::vector<double> surplus(all.size(), 0);
  for (const Game& g : games) {
    const double p = 1 / (1 + std::exp(all[g.b].value - all[g.a].value));
    surplus[g.a] += g.result - p;
    surplus[g.b] -= g.result - p;
  }
  // The phantom's place below the mean: where its expected wins are half of its games.
  const auto against_phantom = [&](std::size_t i, double shift) {
    return 1 / (1 + std::exp(-all[i].value - shift));
  };
  double low = -50, high = 50;
  for (int step = 0; step < 200; ++step) {
    double expected = 0, ties = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].games == 0) continue;
      expected += against_phantom(i, (low + high) / 2);
      ties += 0.5;
    }
    (expected > ties ? high : low) = (low + high) / 2;
  }
  double mean = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].games == 0) continue;
    EXPECT_NEAR(surplus[i] + 0.5 - against_phantom(i, low), 0, 1e-6) << i;
    mean += all[i].value;
  }
  EXPECT_NEAR(mean, 0, 1e-9);
}

TEST(BradleyTerry, StrengthsAreStationary) {
  Random random(11);
  for (int round = 0; round < 20; ++round) {
    const std::size_t players = 2 + static_cast<std::size_t>(random.below(9));
    std::vector<Game> games;
    for (std::size_t a = 0; a < players; ++a) {
      for (std::size_t b = a + 1; b < players; ++b) {
        for (std::size_t event = 0; event < 8; ++event) {
          if (random.below(3) > 0)
            games.push_back({a, b, 0.5 * static_cast<double>(random.below(3)), event});
        }
      }
    }
    expect_stationary(bradley_terry(players, games), games);
  }
}

// a beats b n times: with the phantom, exp(s) = x solves n (1 - x / (x + 1/x)) = x / (x + 1) - 1/2.
TEST(BradleyTerry, TwoPlayersHaveAClosedForm) {
  const std::vector<Game> games{{0, 1, 1, 0}, {0, 1, 1, 1}, {0, 1, 1, 2}};
  const auto all = bradley_terry(2, games);
  EXPECT_NEAR(all[0].value, -all[1].value, 1e-7);
  const double x = std::exp(all[0].value);
  EXPECT_NEAR(3 * (1 - x / (x + 1 / x)), x / (x + 1) - 0.5, 1e-7);
  // The information is {{a + b, -b}, {-b, a + b}}, so half of the difference has the variance
  // 1 / (2 (a + 2 b)); the bootstrap, of three like games, adds nothing.
  const double p = x / (x + 1 / x), a = x / ((1 + x) * (1 + x)), b = 3 * p * (1 - p);
  const double error = std::sqrt(1 / (2 * (a + 2 * b)));
  EXPECT_NEAR(all[0].interval.high - all[0].value, 1.959964 * error, 1e-5);
  EXPECT_NEAR(all[0].value - all[0].interval.low, 1.959964 * error, 1e-5);
}

TEST(BradleyTerry, ComparesThoseThatNeverMet) {
  // a beats b, b beats c, each eight times.
  std::vector<Game> games;
  for (std::size_t event = 0; event < 8; ++event) {
    games.push_back({0, 1, 1, event});
    games.push_back({1, 2, 1, event});
  }
  const auto all = bradley_terry(4, games);
  EXPECT_GT(all[0].value, all[1].value);
  EXPECT_GT(all[1].value, all[2].value);
  EXPECT_EQ(all[0].rank, 1);
  EXPECT_EQ(all[2].group, all[0].group);
  EXPECT_EQ(all[3].games, 0u);
  EXPECT_EQ(all[3].rank, 0);
}

TEST(BradleyTerry, GroupsThatNeverMetAreTold) {
  const auto all = bradley_terry(4, {{0, 1, 1, 0}, {2, 3, 1, 0}});
  EXPECT_EQ(all[0].group, all[1].group);
  EXPECT_EQ(all[2].group, all[3].group);
  EXPECT_NE(all[0].group, all[2].group);
}

// One event, however many games: the interval must not claim more than one challenge can tell.
TEST(BradleyTerry, FewGamesSayLittle) {
  const auto all = bradley_terry(2, {{0, 1, 1, 0}});
  EXPECT_EQ(all[0].rank, 1);
  EXPECT_EQ(all[1].rank, 1);
  EXPECT_TRUE(all[0].tied);
}

TEST(BradleyTerry, IsTheSameEveryTimeAndRefusesNonsense) {
  const std::vector<Game> games{{0, 1, 1, 0}, {1, 2, 0.5, 3}};
  EXPECT_EQ(bradley_terry(3, games)[1].interval.low, bradley_terry(3, games)[1].interval.low);
  EXPECT_TRUE(bradley_terry(0, {}).empty());
  EXPECT_THROW(bradley_terry(2, {{0, 2, 1, 0}}), std::invalid_argument);
  EXPECT_THROW(bradley_terry(2, {{1, 1, 1, 0}}), std::invalid_argument);
  EXPECT_THROW(bradley_terry(2, {{0, 1, 2, 0}}), std::invalid_argument);
}

}  // namespace
}  // namespace assay::compare
