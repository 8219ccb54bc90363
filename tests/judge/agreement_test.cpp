#include "judge/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../report/boards.h"
#include "opinions.h"
#include "report/opinions.h"

namespace assay::judge {
namespace {

using ::testing::AllOf;
using testing::graded_row;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::opinion_on;
using testing::sample_cell;
using testing::two_specs;
using testing::unread_sample;

// Answers to the first challenge, and a judge's opinions on them.
class Agreements : public ::testing::Test {
 protected:
  // Adds an answer with that score and, if there is a mark, an opinion.
  BoardRow& answer(const std::string& model, double score, std::optional<double> mark,
                   std::size_t challenge = 0) {
    BoardRow row = graded_row(specs[challenge], sample_cell(specs[challenge], model));
    row.score.total = score;
    row.score.interval = {score, score};
    if (mark) opinions.push_back(opinion_on(row.key, *mark, row.source_hash));
    return board.entries[row.key] = row;
  }

  JudgeView view() {
    auto views = judge_views(board, specs, opinions);
    EXPECT_EQ(views.size(), 1U);
    return std::move(views.at(0));
  }

  std::string page() {
    report::Page page;
    report::add_judges(page, board, specs, opinions);
    return page.to_markdown();
  }

  std::vector<ChallengeSpec> specs = two_specs();
  Scoreboard board;
  std::vector<Opinion> opinions;
};

TEST_F(Agreements, AreOfEachChallengeAndOfAll) {
  answer("a", 90, 9);
  answer("b", 50, 3);
  answer("c", 70, 8);
  answer("a", 20, 9, 1);
  answer("b", 30, 2, 1);
  const JudgeView v = view();
  ASSERT_EQ(v.agreements.size(), 3U);
  EXPECT_EQ(v.agreements[0].challenge->name, specs[0].name);
  EXPECT_EQ(v.agreements[0].cells, 3U);
  EXPECT_DOUBLE_EQ(*v.agreements[0].tau_b, 1);
  EXPECT_DOUBLE_EQ(*v.agreements[0].rho, 1);
  EXPECT_EQ(v.agreements[1].cells, 2U);
  EXPECT_DOUBLE_EQ(*v.agreements[1].tau_b, -1);
  EXPECT_EQ(v.agreements[2].challenge, nullptr);
  EXPECT_EQ(v.agreements[2].cells, 5U);
  // Marks 9, 3, 8, 9, 2 against 90, 50, 70, 20, 30: of ten pairs, one is tied and six agree.
  EXPECT_DOUBLE_EQ(*v.agreements[2].tau_b, 3 / std::sqrt(90.0));
}

TEST_F(Agreements, LeaveOutWhatDoesNotCompare) {
  answer("good", 90, 9);
  answer("changed", 90, 9).source_hash = "replaced since";
  answer("stale", 90, 9).spec_hash = "of before";
  answer("unread", 90, 9);
  opinions.back().samples = {unread_sample(1)};
  opinions.push_back(opinion_on({"gone", specs[0].name, "", Device::cpu}, 5));
  answer("silent", 90, {});
  const JudgeView v = view();
  ASSERT_EQ(v.judged.size(), 1U);
  EXPECT_EQ(v.judged[0].row->key.model, "good");
  EXPECT_EQ(v.left_out.other_sources, 1U);
  EXPECT_EQ(v.left_out.no_marks, 1U);
  EXPECT_EQ(v.left_out.no_score, 2U);
  EXPECT_FALSE(v.agreements.at(0).tau_b);
  EXPECT_THAT(page(), HasSubstr("Left out: 1 of other sources than were measured, 1 without a "
                                "reply that could be read, 2 of answers without a full score of "
                                "today."));
}

TEST_F(Agreements, ContradictionsFollowTheRule) {
  answer("praised", 59, 7);
  answer("worse", 10, 9.5);
  answer("nearly", 60, 10);
  answer("scorned", 80, 4);
  answer("fine", 79.9, 0);
  answer("middling", 95, 4.1);
  const JudgeView v = view();
  ASSERT_EQ(v.praised_failures.size(), 2U);
  EXPECT_EQ(v.praised_failures[0]->row->key.model, "worse");
  EXPECT_EQ(v.praised_failures[1]->row->key.model, "praised");
  ASSERT_EQ(v.scorned_successes.size(), 1U);
  EXPECT_EQ(v.scorned_successes[0]->row->key.model, "scorned");
  EXPECT_THAT(page(), AllOf(HasSubstr("an opinion of 7 or more where the score is below 60"),
                            HasSubstr("an opinion of 4 or less where the score is 80 or more")));
}

TEST_F(Agreements, RubricsAndJudgesAreApart) {
  answer("a", 90, 9);
  Opinion other = opinions[0];
  other.rubric.version = "3";
  other.rubric.sha256 = "another";
  opinions.push_back(other);
  other.judge = "harsh";
  opinions.push_back(other);
  const auto views = judge_views(board, specs, opinions);
  ASSERT_EQ(views.size(), 3U);
  EXPECT_EQ(views[0].judge, "harsh");
  EXPECT_EQ(views[1].rubric->version, "2");
  EXPECT_EQ(views[2].rubric->version, "3");
}

TEST_F(Agreements, WhatAJudgeWroteIsMadeSafe) {
  answer("a <b>", 10, 9);
  opinions[0].judge = "j <script>";
  opinions[0].samples[0].marks[0].reason = "great | <script>\n# Heading\x1b[2J";
  EXPECT_THAT(page(), AllOf(Not(HasSubstr("<script>")), Not(HasSubstr("\n# Heading")),
                            Not(HasSubstr("\x1b"))));
  const std::string text = report::opinions_text(opinions, board.entries.begin()->second);
  EXPECT_THAT(text, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\n# Heading"))));
}

TEST_F(Agreements, AnOpinionInWords) {
  const BoardRow& row = answer("a", 10, 9);
  EXPECT_EQ(report::opinions_text({}, row), "");
  EXPECT_EQ(report::opinions_text(opinions, row),
            "\nopinions:\n"
            "  opinion of judge by short 2: design 9, clarity 9 (9 of 10); not part of the score\n"
            "    design    parts\n"
            "    clarity   names\n");
  opinions[0].samples.push_back(testing::sample_of(2, 4, 5));
  opinions[0].samples.push_back(unread_sample(3));
  EXPECT_THAT(report::opinions_text(opinions, row),
              HasSubstr("design 6.5, clarity 7 (6.6 of 10, mean of 2 samples, 1 more without "
                        "marks); not part of the score\n"));
  opinions[0].samples = {unread_sample(1)};
  EXPECT_THAT(report::opinions_text(opinions, row),
              HasSubstr("none, no reply could be read: no JSON object"));
  opinions[0].source_hash = "other";
  EXPECT_THAT(report::opinions_text(opinions, row),
              HasSubstr("of other sources than were measured: left out"));
}

}  // namespace
}  // namespace assay::judge
