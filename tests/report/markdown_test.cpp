#include "report/markdown.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "boards.h"
#include "report/markdown_text.h"
#include "report/standings.h"

namespace assay {
namespace {

using report::link_target;
using report::markdown_text;
using testing::full_board;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::two_specs;

int rows_of(const std::string& table) {
  std::istringstream in(table);
  int rows = 0;
  for (std::string line; std::getline(in, line);) rows += line.starts_with('|');
  return rows - 2;  // the header and its rule
}

// --- what an average leaves out ------------------------------------------------

// A board of answers: model, challenge, attempt and the speed that decides its total.
struct Answer {
  const char* model;
  std::size_t challenge;
  const char* attempt;
  bool right;
};

report::Standings standings_of(Scoreboard& board, std::initializer_list<Answer> answers) {
  static const std::vector<ChallengeSpec> kSpecs = two_specs();
  for (const Answer& a : answers) {
    CellResult cell = testing::sample_cell(kSpecs[a.challenge], a.model);
    cell.key.attempt = a.attempt;
    if (!a.right) testing::case_of(cell, "core_a").verdict = Verdict::wrong_answer;
    merge(board, testing::graded_row(kSpecs[a.challenge], cell));
  }
  return report::make_standings(board, kSpecs, Device::cpu);
}

TEST(Averages, OverFewerChallengesAreMarkedAboveOnesOverMore) {
  Scoreboard board;
  const auto all = standings_of(
      board, {{"picky", 0, "", true}, {"whole", 0, "", true}, {"whole", 1, "", false}});
  ASSERT_EQ(all.models[0].model, "picky");
  EXPECT_TRUE(all.models[0].over_fewer);
  EXPECT_FALSE(all.models[1].over_fewer);
  const std::string text = report::overall_table(all, 5);
  EXPECT_THAT(text, HasSubstr("| 1 † | picky |"));
  EXPECT_THAT(text, HasSubstr("| 1/2 | " + markdown_text(all.challenges[1]->title) + " |"));
  EXPECT_THAT(text, HasSubstr("† An average over fewer challenges"));
  EXPECT_THAT(report::place_among_others(all, "picky", all.challenges[0]->name),
              HasSubstr("1 of 2 challenges, without " + all.challenges[1]->title +
                        "; models below it attempted more"));
  EXPECT_EQ(report::place_among_others(all, "whole", all.challenges[0]->name), "");
}

TEST(Averages, OverFewerBelowOnesOverMoreAreNot) {
  Scoreboard board;
  const auto all = standings_of(
      board, {{"picky", 0, "", false}, {"whole", 0, "", true}, {"whole", 1, "", true}});
  EXPECT_EQ(all.models[0].model, "whole");
  EXPECT_THAT(report::overall_table(all, 5), Not(HasSubstr("†")));
}

TEST(Averages, ShowFirstAndMeanBesideTheBest) {
  Scoreboard board;
  const auto all =
      standings_of(board, {{"m", 0, "1", false}, {"m", 0, "2", true}, {"m", 1, "", true}});
  const report::Attempts a = report::attempts_of(all.models[0].attempts[0]);
  EXPECT_EQ(a.count, 2u);
  EXPECT_LE(a.first, 59);
  EXPECT_GT(a.best, 99);
  EXPECT_NEAR(a.mean, (a.first + a.best) / 2, 1e-9);
  EXPECT_LT(*all.models[0].first, *all.models[0].mean);
  EXPECT_LT(*all.models[0].mean, *all.models[0].average);
  EXPECT_THAT(report::overall_table(all, 5), HasSubstr("| First attempts | Mean of attempts |"));
  EXPECT_THAT(report::attempts_table(all), HasSubstr("| Best | First | Mean |"));
  EXPECT_THAT(report::place_among_others(all, "m", all.challenges[0]->name),
              HasSubstr("attempts: 2, best"));
}

TEST(Averages, OfSingleAttemptsNeedNoMoreColumns) {
  Scoreboard board;
  EXPECT_THAT(report::overall_table(standings_of(board, {{"m", 0, "", true}}), 5),
              Not(HasSubstr("First")));
}

// --- tables of a large board ---------------------------------------------------

// So many models, each with an answer to the first of the two challenges.
report::Standings many_models(int models) {
  static const std::vector<ChallengeSpec> kSpecs = two_specs();
  static Scoreboard board;
  board.entries.clear();
  for (int i = 0; i < models; ++i) {
    merge(board, testing::graded_row(
                     kSpecs[0], testing::sample_cell(kSpecs[0], fmt::format("model_{:03}", i))));
  }
  return report::make_standings(board, kSpecs, Device::cpu);
}

TEST(LargeBoard, OverallTableShowsTheBestAndSaysSo) {
  const auto all = many_models(7);
  const std::string text = report::overall_table(all, 5);
  EXPECT_EQ(rows_of(text), 5);
  EXPECT_THAT(text, HasSubstr("\n\nOnly the best 5 of 7 are shown.\n\n"));
  EXPECT_THAT(text, Not(HasSubstr("model_005")));
}

TEST(LargeBoard, AWholeTableSaysNothing) {
  const auto all = many_models(5);
  EXPECT_EQ(rows_of(report::overall_table(all, 5)), 5);
  EXPECT_THAT(report::overall_table(all, 5), Not(HasSubstr("Only")));
  EXPECT_THAT(report::head_to_head_table(all, 5), Not(HasSubstr("Only")));
  EXPECT_THAT(report::challenge_table(all, 0, 5), Not(HasSubstr("Only")));
}

TEST(LargeBoard, HeadToHeadComparesTheBestOnly) {
  const std::string text = report::head_to_head_table(many_models(7), 3);
  EXPECT_EQ(rows_of(text), 3);
  EXPECT_THAT(text, HasSubstr("against | model_000 | model_001 | model_002 |\n"));
  EXPECT_THAT(text, HasSubstr("Only the best 3 of 7 are shown."));
}

TEST(LargeBoard, AChallengeListsTheBestAndNamesTheCommandForTheOthers) {
  const auto all = many_models(7);
  const std::string text = report::challenge_table(all, 0, 4);
  EXPECT_EQ(rows_of(text), 4);
  EXPECT_THAT(text, HasSubstr("Only the best 4 of 7 are shown; `assay show MODEL CHALLENGE`"));
  EXPECT_EQ(report::challenge_table(all, 1, 4), "Not attempted yet.\n\n");
}

TEST(LargeBoard, TheNewestSettingsAreShown) {
  const std::string text = report::how_measured(full_board(), 1);
  EXPECT_EQ(rows_of(text), 1);
  EXPECT_THAT(text, HasSubstr("2026-11-22T04"));
  EXPECT_THAT(text, HasSubstr("Only the newest 1 of 2 are shown."));
}

// --- standings ---------------------------------------------------------------

// One challenge, one model per interval.
report::Standings standings_of(const std::vector<Interval>& intervals) {
  static const std::vector<ChallengeSpec> kSpecs{testing::sample_spec()};
  static Scoreboard board;
  board.entries.clear();
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    CellResult cell = testing::sample_cell(kSpecs[0], std::string(1, static_cast<char>('a' + i)));
    BoardEntry e = testing::graded_entry(kSpecs[0], cell);
    e.score.interval = intervals[i];
    e.score.total = (intervals[i].low + intervals[i].high) / 2;
    merge(board, testing::row_of(e));
  }
  return report::make_standings(board, kSpecs, Device::cpu);
}

TEST(Standings, OverlappingIntervalsTie) {
  const auto s = standings_of({{70, 72}, {80, 84}, {83, 87}, {60, 60}});
  const std::vector<std::string> order{s.models[0].model, s.models[1].model, s.models[2].model,
                                       s.models[3].model};
  EXPECT_EQ(order, (std::vector<std::string>{"c", "b", "a", "d"}));
  EXPECT_EQ(s.models[0].rank, 1);
  EXPECT_EQ(s.models[1].rank, 1);
  EXPECT_TRUE(s.models[0].tied && s.models[1].tied);
  EXPECT_EQ(s.models[2].rank, 3);
  EXPECT_FALSE(s.models[2].tied);
  EXPECT_EQ(s.models[3].rank, 4);
}

// a and b overlap, b and c overlap, a is above c: only what is clearly better counts.
TEST(Standings, TiesDoNotChain) {
  const auto s = standings_of({{80, 90}, {75, 82}, {70, 76}});
  EXPECT_EQ(s.models[0].rank, 1);
  EXPECT_EQ(s.models[1].rank, 1);
  EXPECT_EQ(s.models[2].rank, 2);
}

TEST(Standings, RoundingIsNoDifference) {
  const auto s = standings_of({{80, 80}, {80 + 1e-12, 80 + 1e-12}});
  EXPECT_EQ(s.models[1].rank, 1);
}

TEST(Standings, HeadToHead) {
  const auto s = standings_of({{80, 84}, {83, 87}, {60, 60}});
  const auto top = report::head_to_head(s.models[0], s.models[2]);
  EXPECT_EQ(top.wins, 1);
  const auto bottom = report::head_to_head(s.models[2], s.models[0]);
  EXPECT_EQ(bottom.losses, 1);
  EXPECT_EQ(report::head_to_head(s.models[0], s.models[1]).ties, 1);
}

TEST(Standings, BestAttemptCounts) {
  const Scoreboard board = full_board();
  const auto specs = two_specs();
  for (const auto& s : report::make_standings(board, specs, Device::cpu).models) {
    if (s.model != "tuned") continue;
    EXPECT_EQ(s.best[1]->key.attempt, "2");
    ASSERT_EQ(s.attempts[1].size(), 3u);
    EXPECT_EQ(s.attempts[1][2]->key.attempt, "10");
    EXPECT_EQ(s.attempted, 2);
    EXPECT_NEAR(*s.average, (*s.best[0]->score.total + *s.best[1]->score.total) / 2, 1e-12);
  }
}

// --- escaping ----------------------------------------------------------------

TEST(MarkdownText, ShowsJustTheCharacters) {
  EXPECT_EQ(markdown_text("GLM-5 (v4.1)"), "GLM-5 (v4.1)");
  EXPECT_EQ(markdown_text("a_b*c`d"), "a_b\\*c\\`d");
  EXPECT_EQ(markdown_text("_a_ b__c :100:"), "\\_a\\_ b\\_\\_c \\:100:");
  EXPECT_EQ(markdown_text("[x](javascript:y)"), "\\[x\\](javascript\\:y)");
  EXPECT_EQ(markdown_text("a|b\nc\r\x1b[0m"), "a\\|b c  \\[0m");
  EXPECT_EQ(markdown_text("<img src=x>&amp;"), "&lt;img src=x&gt;&amp;amp;");
  EXPECT_EQ(markdown_text("http://www.x.org 2.5"), "http\\://www\\.x.org 2.5");
  EXPECT_EQ(markdown_text("back\\slash"), "back\\\\slash");
  EXPECT_EQ(markdown_text("<!-- assay:end -->"), "&lt;\\!-- assay\\:end --&gt;");
}

TEST(MarkdownText, IsCutBetweenCharacters) {
  EXPECT_EQ(markdown_text("abcdef", 3), "abc ...");
  EXPECT_EQ(markdown_text("aé", 2), "a ...");
  EXPECT_EQ(markdown_text("aé", 3), "aé");
}

TEST(LinkTarget, EndsNoLink) {
  EXPECT_EQ(link_target("../results/RANKINGS.md"), "../results/RANKINGS.md");
  EXPECT_EQ(link_target("a b)(\n<é"), "a%20b%29%28%0A%3C%C3%A9");
}

}  // namespace
}  // namespace assay
