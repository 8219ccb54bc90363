#include "report/markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "boards.h"
#include "golden.h"
#include "report/markdown_text.h"
#include "report/standings.h"
#include "util/files.h"

namespace assay {
namespace {

using report::markdown_text;
using testing::full_board;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::two_specs;

std::string error_of(const std::string& readme) {
  try {
    replace_section(readme, "new\n", "R.md");
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// --- the section -------------------------------------------------------------

TEST(RankingSection, LooksAsRead) {
  testing::expect_golden("ranking.md", ranking_section(full_board(), two_specs()));
}

TEST(RankingSection, DependsOnTheBoardOnly) {
  const std::string once = ranking_section(full_board(), two_specs());
  EXPECT_EQ(ranking_section(full_board(), two_specs()), once);
  const Scoreboard stored = parse_scoreboard(scoreboard_text(full_board()), "f");
  EXPECT_EQ(ranking_section(stored, two_specs()), once);
}

TEST(RankingSection, EmptyBoardSaysHowToFillIt) {
  EXPECT_THAT(ranking_section({}, two_specs()), HasSubstr("scripts/run.sh"));
}

TEST(RankingSection, NotRunIsNeverZero) {
  const auto specs = two_specs();
  Scoreboard board;
  merge(board, testing::graded_entry(specs[0], testing::untimed_cell(specs[0])));
  const std::string text = ranking_section(board, specs);
  EXPECT_THAT(text, HasSubstr("| – | untimed | not run | – | 0/2 |"));
  EXPECT_THAT(text, HasSubstr("timing was switched off"));
  EXPECT_THAT(text, Not(HasSubstr("| 0.0")));
}

TEST(RankingSection, MarkupInNamesAndDetailsIsEscaped) {
  const std::string text = ranking_section(full_board(), two_specs());
  EXPECT_THAT(text, HasSubstr("flawed &lt;b&gt;\\*model\\*&lt;/b&gt;"));
  EXPECT_THAT(text, HasSubstr("Xeon \\| 8481C"));
  EXPECT_THAT(text, Not(HasSubstr("<b>")));
}

TEST(RankingSection, EveryRowOfATableHasAsManyCells) {
  std::size_t cells = 0;
  std::istringstream in(ranking_section(full_board(), two_specs()));
  for (std::string line; std::getline(in, line);) {
    std::size_t bars = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    }
    if (!line.starts_with('|')) {
      cells = 0;
      continue;
    }
    if (cells != 0) {
      EXPECT_EQ(bars, cells) << line;
    }
    cells = bars;
  }
}

TEST(RankingSection, DevicesAreRankedApart) {
  const auto specs = two_specs();
  Scoreboard board;
  for (const Device device : kDevices) {
    CellResult cell = testing::sample_cell(specs[0]);
    cell.key.device = device;
    merge(board, testing::graded_entry(specs[0], cell));
  }
  const std::string text = ranking_section(board, specs);
  EXPECT_THAT(text, HasSubstr("\n### C++ on the CPU\n"));
  EXPECT_THAT(text, HasSubstr("\n### CUDA on the simulated GPU\n"));
}

TEST(RankingSection, DevicesOfOneModelStandSideBySide) {
  const auto specs = two_specs();
  Scoreboard board;
  for (const auto& [model, device] :
       {std::pair{"both", Device::cpu}, {"both", Device::sim}, {"one", Device::cpu}}) {
    CellResult cell = testing::sample_cell(specs[0], model);
    cell.key.device = device;
    merge(board, testing::graded_entry(specs[0], cell));
  }
  const std::string text = ranking_section(board, specs);
  const std::string table = text.substr(std::min(text.find("\n### Side by side\n"), text.size()));
  const std::size_t cpp = table.find("| both | C++ on the CPU | **A** 100.0 |");
  ASSERT_NE(cpp, std::string::npos) << text;
  EXPECT_THAT(table.substr(table.find('\n', cpp)),
              ::testing::StartsWith("\n| both | CUDA on the simulated GPU | not run |"));
  EXPECT_EQ(table.substr(0, table.find("### How")).find("| one |"), std::string::npos);
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
    merge(board, e);
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
    EXPECT_EQ(s.best[1]->cell.key.attempt, "2");
    ASSERT_EQ(s.attempts[1].size(), 3u);
    EXPECT_EQ(s.attempts[1][2]->cell.key.attempt, "10");
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

// --- replacement -------------------------------------------------------------

TEST(ReplaceSection, ReplacesWhatStandsBetweenTheMarkers) {
  const std::string readme = "# T\n<!-- assay:begin -->\nold\n<!-- assay:end -->\ntail";
  const std::string once = replace_section(readme, "new\n");
  EXPECT_EQ(once, "# T\n<!-- assay:begin -->\nnew\n<!-- assay:end -->\ntail");
  EXPECT_EQ(replace_section(once, "new\n"), once);
}

TEST(ReplaceSection, OnlyWholeLinesAreMarkers) {
  const std::string readme =
      "write `<!-- assay:begin -->` first\n<!-- assay:begin -->\r\n<!-- assay:end -->";
  EXPECT_EQ(replace_section(readme, "x\n"),
            "write `<!-- assay:begin -->` first\n<!-- assay:begin -->\r\nx\n<!-- assay:end -->");
}

TEST(ReplaceSection, ErrorsNameTheRemedy) {
  EXPECT_THAT(error_of("# T\n"), HasSubstr("R.md: no line '<!-- assay:begin -->': add the lines"));
  EXPECT_THAT(error_of("<!-- assay:begin -->\n"), HasSubstr("no line '<!-- assay:end -->'"));
  EXPECT_THAT(error_of("<!-- assay:begin -->\n<!-- assay:begin -->\n<!-- assay:end -->\n"),
              HasSubstr("2 lines '<!-- assay:begin -->': keep one"));
  EXPECT_THAT(error_of("<!-- assay:end -->\n<!-- assay:begin -->\n"), HasSubstr("swap them"));
}

TEST(ReplaceSection, TheSectionHoldsNoMarker) {
  const auto specs = two_specs();
  Scoreboard board;
  CellResult cell = testing::unbuilt_cell(specs[0]);
  cell.key.model = "x\n<!-- assay:end -->\n";
  cell.build.log = "error: \n<!-- assay:end -->\n";
  merge(board, testing::graded_entry(specs[0], cell));
  const std::string readme = "<!-- assay:begin -->\n<!-- assay:end -->\n";
  const std::string once = replace_section(readme, ranking_section(board, specs));
  EXPECT_EQ(replace_section(once, ""), readme);
}

}  // namespace
}  // namespace assay
