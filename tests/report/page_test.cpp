// The tools that commands and pages print with: pages in two forms, comparisons, flat tables.
#include "report/page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../compare/boards.h"
#include "report/comparison.h"
#include "report/published.h"
#include "report/tables.h"

namespace assay::report {
namespace {

using testing::given_board;
using ::testing::HasSubstr;
using ::testing::Not;

Page hostile_page() {
  Page page;
  page.heading(1, "A <b>model</b>");
  page.paragraph("say \x1b[31mred\x1b[0m and | and `code`");
  page.bullet({"one", "models/a b.md"});
  page.bullet("two");
  page.table({"Name", "Score"}, "lr", {{"x|y", "1.0"}, {"<!-- assay:end -->", "2.0"}});
  page.table({"Empty"}, "l", {});
  page.markdown("[link](x.md)");
  return page;
}

TEST(Page, MarkdownEscapesWhatOthersWrote) {
  EXPECT_EQ(hostile_page().to_markdown(),
            "# A &lt;b&gt;model&lt;/b&gt;\n\n"
            "say  \\[31mred \\[0m and \\| and \\`code\\`\n\n"
            "- [one](models/a%20b.md)\n- two\n\n"
            "| Name | Score |\n| --- | ---: |\n| x\\|y | 1.0 |\n"
            "| &lt;\\!-- assay\\:end --&gt; | 2.0 |\n\n"
            "[link](x.md)\n");
}

TEST(Page, ATerminalGetsNoControls) {
  const std::string text = hostile_page().to_terminal();
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("  - one\n  - two\n"));
  EXPECT_THAT(text, HasSubstr("x|y"));
  EXPECT_THAT(text, Not(HasSubstr("link")));
}

TEST(Page, LongParagraphsAreBrokenAtSpaces) {
  Page page;
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  page.paragraph(words);
  std::size_t longest = 0, at = 0;
  const std::string text = page.to_terminal();
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  EXPECT_LE(longest, 98u);
  EXPECT_GT(longest, 80u);
}

TEST(Page, ATerminalGetsNoColumnWithoutValues) {
  Page page;
  page.table({"Model", "Cost", "Score"}, "lrr", {{"a", "–", "1.0"}, {"b", "–", "2.0"}});
  EXPECT_EQ(page.to_terminal(), "  Model  Score\n  a        1.0\n  b        2.0\n");
  EXPECT_THAT(page.to_markdown(), HasSubstr("| Cost |"));
}

TEST(Page, ATableThatIsTooWideForATerminalIsTurned) {
  Page page;
  const std::string wide(40, 'x');
  page.table({"Model", "First", "Second", "Third"}, "llll",
             {{"a", wide, wide, wide}, {"b", wide, wide, wide}});
  EXPECT_EQ(
      page.to_terminal(),
      fmt::format("  Model   a{0}b\n  First   {1}  {1}\n  Second  {1}  {1}\n  Third   {1}  {1}\n",
                  std::string(41, ' '), wide));
}

// --- comparisons ---------------------------------------------------------------

struct Compared {
  std::vector<ChallengeSpec> specs = testing::three_specs();
  Scoreboard board = given_board(
      {{"a", 0, "", 90, 1, Verdict::ok, {}, 0.8},
       {"b", 0, "", 40, 1, Verdict::wrong_answer, {{"core_b", Verdict::wrong_answer}}, 0.2},
       {"a", 1, "1", 50, 1},
       {"a", 1, "2", 54, 1},
       {"b", 1, "", 52, 1},
       {"c", 0, "", 90.5, 1}});
  compare::Field field = compare::make_field(board, specs, Device::cpu);
};

TEST(Comparison, OfTwoTellsWhoWinsAndWhy) {
  const Compared c;
  Page page;
  add_comparison(page, c.field, {c.field.find("a"), c.field.find("b")}, {});
  const std::string text = page.to_terminal();
  EXPECT_THAT(text, HasSubstr("a against b: C++ on the CPU"));
  EXPECT_THAT(text, HasSubstr("a wins 1, ties 1 and loses 0 of 2 whole challenges"));
  EXPECT_THAT(text, HasSubstr("+50.0 (+48.6 to +51.4)"));
  EXPECT_THAT(text, HasSubstr("b fails 1 core case: core_b (WA)"));
  EXPECT_THAT(text, HasSubstr("a is 4 times as fast"));
  EXPECT_THAT(text, HasSubstr("a has a solution (correct) where b has none: The first."));
  EXPECT_THAT(text, HasSubstr("timings alone"));
  EXPECT_THAT(text, HasSubstr("pass@1"));
}

// "which the other passes" would be said of cases that the other never ran.
TEST(Comparison, WhatIsNotComparedDecidesNothing) {
  Compared c;
  c.board.entries.at({"a", "first", "", Device::cpu}).score.flags = {{Note::Kind::quick, "quick"}};
  c.field = compare::make_field(c.board, c.specs, Device::cpu);
  Page page;
  add_comparison(page, c.field, {c.field.find("a"), c.field.find("b")}, {});
  const std::string text = page.to_terminal();
  EXPECT_THAT(text, HasSubstr("not compared: a quick score beside a full one"));
  EXPECT_THAT(text, Not(HasSubstr("core_b")));
  Page of_three;
  add_comparison(of_three, c.field, {c.field.find("a"), c.field.find("b"), c.field.find("c")}, {});
  EXPECT_THAT(of_three.to_terminal(), HasSubstr("not compared: a, c"));
}

TEST(Comparison, ShowsThePassRatesAndSpeedsThatAreAskedFor) {
  const Compared c;
  ComparisonOptions options;
  options.goal = compare::goal_from("score>=53");
  options.k = {1, 2};
  options.p = {0.5};
  const auto j = comparison_json(c.field, {c.field.find("a"), c.field.find("b")}, options);
  const auto& a = j.at("models").at(0);
  EXPECT_EQ(a.at("pass_at_k").at(0).at("value"), 0.75);  // 1 of 1, and 1 of 2
  EXPECT_EQ(a.at("pass_at_k").at(1).at("value"), 1);
  EXPECT_EQ(a.at("pass_at_k").at(1).at("challenges"), 1);
  EXPECT_EQ(a.at("fast_p").at(1).at("reference"), "par");
  EXPECT_EQ(a.at("fast_p").at(1).at("value"), 0.5);
  EXPECT_TRUE(a.at("cost_usd_per_solved").is_null());
  Page page;
  add_comparison(page, c.field, {c.field.find("a"), c.field.find("b")}, options);
  EXPECT_THAT(page.to_terminal(), HasSubstr("fast_0.5 on par"));
}

TEST(Comparison, OfManyNamesTheBestOfEachChallenge) {
  const Compared c;
  Page page;
  add_comparison(page, c.field, {c.field.find("a"), c.field.find("b"), c.field.find("c")}, {});
  EXPECT_THAT(page.to_terminal(), HasSubstr("tie of a, c"));
}

TEST(Comparison, AsJsonHoldsTheSame) {
  const Compared c;
  const auto j = comparison_json(c.field, {c.field.find("a"), c.field.find("b")}, {});
  const auto& pair = j.at("pairs").at(0);
  EXPECT_EQ(pair.at("wins"), 1);
  EXPECT_EQ(pair.at("challenges").at(0).at("better"), "a");
  EXPECT_EQ(pair.at("challenges").at(0).at("facts").at(0).at("whose"), "b");
  EXPECT_EQ(pair.at("challenges").at(1).at("attempts").at("a"), 2);
  EXPECT_EQ(pair.at("only_a_solved").at(0), "first");
}

// --- published -----------------------------------------------------------------

TEST(PublishedPage, ShowsMeasuredScoresOfTheSameModels) {
  const Compared c;
  const auto p = compare::parse_published("model,challenge,grade\nA,first,B+\nnobody-1,first,C\n",
                                          "f", "a table");
  Page page;
  add_published(page, p, c.board, c.specs);
  EXPECT_THAT(page.to_markdown(), HasSubstr("| a | The first | B+ | 90.0 (89.0 to 91.0) | 1 |"));
  EXPECT_THAT(page.to_markdown(), HasSubstr("Source: a table."));
}

// --- flat tables ---------------------------------------------------------------

TEST(Tables, EveryRowHasTheSameColumns) {
  const Compared c;
  // Only one attempt's code is known.
  const CodeOf code_of = [](const BoardRow& row) -> std::optional<CodeFacts> {
    if (row.key.model != "b") return std::nullopt;
    CodeFacts code;
    code.functions = 3;
    code.longest = CodePlace{"f", "a.cpp", 4, 17};
    return code;
  };
  for (const auto& rows : {attempt_rows(c.field, code_of), cell_rows(c.field)}) {
    for (const FlatRow& row : rows) EXPECT_EQ(csv_header(row), csv_header(rows[0]));
  }
  const auto attempts = attempt_rows(c.field, code_of);
  EXPECT_EQ(attempts.size(), 6u);
  for (const FlatRow& row : attempts) {
    const bool known = row.at("model") == "b";
    EXPECT_EQ(row.at("functions"), known ? FlatRow(3) : FlatRow());
    EXPECT_EQ(row.at("longest_function"), known ? FlatRow(17) : FlatRow());
    EXPECT_TRUE(row.at("highest_complexity").is_null());
    EXPECT_TRUE(row.at("compiler_warnings").is_null());
  }
  EXPECT_EQ(cell_rows(c.field).size(), 5u);
  EXPECT_EQ(cell_rows(c.field)[1].at("mean"), 52);
  EXPECT_EQ(cell_rows(c.field)[1].at("counted"), 2);
  const CellResult cell = testing::sample_cell(c.specs[0]);
  EXPECT_EQ(case_rows(cell).size(), cell.cases.size());
  EXPECT_EQ(timing_rows(cell).size(), 22u);
  EXPECT_TRUE(timing_rows(cell)[5].at("naive_s").is_null());
}

TEST(Tables, CsvIsQuotedAndHoldsNoFormula) {
  const FlatRow row{{"a", "x,\"y\"\n"}, {"b", "=cmd()"}, {"c", -1.5}, {"d", nullptr},
                    {"e", true},        {"f", "-inf"},   {"g", "@x"}};
  EXPECT_EQ(csv_header(row), "a,b,c,d,e,f,g\n");
  EXPECT_EQ(csv_line(row), "\"x,\"\"y\"\"\n\",'=cmd(),-1.5,,true,-inf,'@x\n");
  EXPECT_EQ(json_line({{"a", "x\xff"}}), "{\"a\":\"x\xef\xbf\xbd\"}\n");
}

}  // namespace
}  // namespace assay::report
