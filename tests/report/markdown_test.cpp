#include "report/markdown.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "boards.h"
#include "report/markdown_text.h"
#include "report/rankings.h"
#include "report/standings.h"
#include "report/terminal.h"

namespace assay {
namespace {

using report::link_target;
using report::markdown_text;
using ::testing::AllOf;
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

TEST(Averages, OverFewerChallengesHaveNoRank) {
  Scoreboard board;
  const auto all = standings_of(
      board, {{"picky", 0, "", true}, {"whole", 0, "", true}, {"whole", 1, "", false}});
  ASSERT_EQ(all.models[0].model, "whole");
  EXPECT_EQ(all.models[0].rank, 1);
  EXPECT_EQ(all.models[1].rank, 0);
  EXPECT_GT(*all.models[1].average, *all.models[0].average);
  const std::string text = report::overall_table(all, 5);
  EXPECT_THAT(text, HasSubstr("| 1 | whole |"));
  EXPECT_THAT(text, HasSubstr("| – | picky |"));
  EXPECT_THAT(text, HasSubstr("| 1 of 2 |"));
  EXPECT_THAT(report::place_among_others(all, "picky", all.field.challenges[0]->name),
              HasSubstr("1 of 2 challenges, without " + all.field.challenges[1]->title +
                        "; it is not ranked by it"));
  EXPECT_EQ(report::place_among_others(all, "whole", all.field.challenges[0]->name), "");
}

TEST(Averages, OfCommonChallengesAreRankedApart) {
  Scoreboard board;
  const auto all = standings_of(
      board, {{"picky", 0, "", true}, {"whole", 0, "", false}, {"whole", 1, "", true}});
  const auto subsets = report::subset_rankings(all, 5);
  ASSERT_EQ(subsets.size(), 1u);
  EXPECT_EQ(subsets[0].challenges, std::vector<std::size_t>{0});
  ASSERT_EQ(subsets[0].places.size(), 2u);
  EXPECT_EQ(subsets[0].places[0].standing->model, "picky");
  EXPECT_EQ(subsets[0].places[1].rank, 2);
  EXPECT_THAT(report::subset_tables(all, 5), HasSubstr("alone (1 of 2 challenges):"));
  EXPECT_EQ(report::subset_tables(all, 0), "");
}

TEST(Averages, RankByTheMeanAndShowTheBest) {
  Scoreboard board;
  const auto all =
      standings_of(board, {{"m", 0, "1", false}, {"m", 0, "2", true}, {"m", 1, "", true}});
  const report::Standing& m = all.models[0];
  EXPECT_EQ(*m.average, *m.mean);
  EXPECT_LT(*m.first, *m.mean);
  EXPECT_LT(*m.mean, *m.best);
  EXPECT_LT(m.interval.low, *m.mean);  // over attempts, though these were timed without noise
  EXPECT_THAT(report::overall_table(all, 5), HasSubstr("| Average (95 %) | Best attempts |"));
  EXPECT_THAT(report::attempts_table(all), HasSubstr("| Mean (95 %) | Best | First |"));
  EXPECT_THAT(report::rank_note(all.by), HasSubstr("mean of attempts"));
  EXPECT_THAT(report::place_among_others(all, "m", all.field.challenges[0]->name),
              HasSubstr("attempts: 2, mean"));
  const auto specs = two_specs();
  const auto best = report::make_standings(board, specs, Device::cpu, compare::By::best);
  EXPECT_EQ(*best.models[0].average, *best.models[0].best);
}

// The device cannot grade the main part of a challenge.
TEST(Averages, LeavePartialChallengesOut) {
  auto specs = two_specs();
  for (CaseSpec& c : specs[1].cases) c.on_simulator = c.group != CaseGroup::core;
  Scoreboard board;
  for (const ChallengeSpec& spec : specs) {
    BoardRow row = testing::graded_row(spec, testing::sample_cell(spec, "m"));
    row.key.device = Device::sim;
    row.score.total = spec.name == specs[0].name ? 80 : 20;
    row.score.interval = {*row.score.total, *row.score.total};
    merge(board, row);
  }
  const auto all = report::make_standings(board, specs, Device::sim);
  EXPECT_EQ(*all.models[0].average, 80);
  EXPECT_EQ(all.models[0].rank, 1);
  EXPECT_EQ(all.whole, 1u);
  EXPECT_THAT(report::overall_table(all, 5), HasSubstr("| 1 of 1 + 1 partial |"));
  EXPECT_THAT(report::grade_matrix(all), HasSubstr("20.0 (partial) |"));
  EXPECT_THAT(report::challenge_table(all, 1, 5),
              HasSubstr("Partial: not graded on this device: "));
  const BoardRow& row = board.entries.at({"m", specs[1].name, "", Device::sim});
  EXPECT_THAT(explain(row, specs[1]), HasSubstr("note      partial, enters no average: "));
}

// --- tables of a large board ---------------------------------------------------

// That many models, each with an answer to the first of the two challenges.
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

TEST(TargetsNote, SaysWhichAnswersWereCompiledForWhich) {
  Scoreboard board = full_board();
  EXPECT_EQ(report::targets_note(board), "");
  BoardRow& row = board.entries.begin()->second;
  row.target = "x86-64-v3";
  EXPECT_THAT(report::targets_note(board),
              AllOf(HasSubstr("different targets: native ("), HasSubstr("; x86-64-v3 (")));
  EXPECT_THAT(report::how_measured(board, 9), HasSubstr("| x86-64-v3 |"));
}

TEST(MachinesNote, SaysWhichAnswersWereTimedOnWhichKind) {
  Scoreboard board = full_board();
  EXPECT_EQ(report::machines_note(board), "");
  BoardRow& row = board.entries.begin()->second;
  row.machine.cpu = "Other CPU";
  row.machine.cores = 64;
  EXPECT_THAT(report::machines_note(board),
              AllOf(HasSubstr("machines of different kinds: "), HasSubstr("Other CPU, 64 cores ("),
                    HasSubstr("Par was timed on each")));
  EXPECT_THAT(report::how_measured(board, 9), HasSubstr("| Other CPU, 64 cores"));
  const std::string section = ranking_section(board, two_specs());
  EXPECT_THAT(section, HasSubstr("machines of different kinds"));
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
  const auto s = standings_of({{80, 84}, {82, 86}, {60, 60}});
  EXPECT_EQ(s.models[0].record.wins, 1);
  EXPECT_EQ(s.models[0].record.ties, 1);
  EXPECT_EQ(s.models[2].record.losses, 2);
  ASSERT_TRUE(s.models[0].strength && s.models[2].strength);
  EXPECT_GT(s.models[0].strength->value, s.models[2].strength->value);
  EXPECT_THAT(report::strength_table(s, 5), HasSubstr("| 1= | b |"));
}

TEST(Standings, OfALargeBoardTheBestMeet) {
  const auto s = many_models(static_cast<int>(report::kMostMet) + 5);
  EXPECT_EQ(s.met, report::kMostMet);
  EXPECT_THAT(report::strength_table(s, 3), HasSubstr("Of 55 models the 50"));
}

TEST(Standings, AttemptsAreInTheirOrder) {
  const Scoreboard board = full_board();
  const auto specs = two_specs();
  const auto standings = report::make_standings(board, specs, Device::cpu);
  const auto s = std::ranges::find(standings.models, "tuned", &report::Standing::model);
  ASSERT_NE(s, standings.models.end());
  const compare::Cell& cell = s->player->cells[1];
  EXPECT_EQ(cell.best->key.attempt, "2");
  ASSERT_EQ(cell.attempts.size(), 3u);
  EXPECT_EQ(cell.attempts[2]->key.attempt, "10");
  EXPECT_EQ(s->attempted, 2);
  EXPECT_NEAR(*s->best, (*s->player->cells[0].best->score.total + *cell.best->score.total) / 2,
              1e-12);
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
