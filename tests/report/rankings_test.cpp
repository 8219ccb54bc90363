#include "report/rankings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "assay/error.h"
#include "boards.h"
#include "golden.h"
#include "report/standings.h"

namespace assay {
namespace {

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

// One answer for each pair of model and device.
Scoreboard board_of(const std::vector<std::pair<std::string, Device>>& answers) {
  const ChallengeSpec spec = two_specs()[0];
  Scoreboard board;
  for (const auto& [model, device] : answers) {
    CellResult cell = testing::sample_cell(spec, model);
    cell.key.device = device;
    merge(board, testing::graded_row(spec, cell));
  }
  return board;
}

// --- both texts ----------------------------------------------------------------

TEST(Rankings, LookAsRead) {
  testing::expect_golden("readme_section.md", ranking_section(full_board(), two_specs()));
  testing::expect_golden("rankings.md", rankings_document(full_board(), two_specs()));
}

TEST(Rankings, DependOnTheBoardOnly) {
  const Scoreboard stored = parse_scoreboard(scoreboard_text(full_board()), "f");
  EXPECT_EQ(ranking_section(stored, two_specs()), ranking_section(full_board(), two_specs()));
  EXPECT_EQ(rankings_document(stored, two_specs()), rankings_document(full_board(), two_specs()));
}

TEST(Rankings, OfAnEmptyBoardSayHowToFillIt) {
  EXPECT_THAT(ranking_section({}, two_specs()), HasSubstr("scripts/run.sh"));
  EXPECT_THAT(rankings_document({}, two_specs()), HasSubstr("scripts/run.sh"));
}

TEST(Rankings, NotRunIsNeverZero) {
  const auto specs = two_specs();
  Scoreboard board;
  merge(board, testing::graded_row(specs[0], testing::untimed_cell(specs[0])));
  const std::string text = rankings_document(board, specs);
  EXPECT_THAT(text, HasSubstr("| – | untimed | not run | – | – | 0 of 2 | – |"));
  EXPECT_THAT(text, HasSubstr("timing was switched off"));
  EXPECT_THAT(text, Not(HasSubstr("| 0.0")));
}

TEST(Rankings, ReferencesHaveNoRankAndTakeNoneFromModels) {
  const ChallengeSpec spec = two_specs()[0];
  Scoreboard board;
  merge(board, testing::graded_row(spec, testing::sample_cell(spec, "above")));
  merge(board, testing::graded_row(spec, testing::sample_cell(spec, "as good")));
  merge(board, testing::graded_row(spec, testing::unbuilt_cell(spec)));
  board.models["above"].sample = true;
  const std::string text = ranking_section(board, {spec});
  EXPECT_THAT(text, HasSubstr("| 1 | as good |"));
  EXPECT_THAT(text, HasSubstr("| 2 | unbuilt |"));
  EXPECT_THAT(text, HasSubstr("| ref | above | 100.0"));
  EXPECT_LT(text.find("unbuilt"), text.find("above"));
  EXPECT_THAT(text, HasSubstr("Rows marked ref are references"));
  EXPECT_THAT(ranking_section(full_board(), two_specs()), Not(HasSubstr("marked ref")));
}

TEST(Rankings, ModelsAreListedWithWhatIsKnown) {
  const ChallengeSpec spec = two_specs()[0];
  Scoreboard board;
  EXPECT_THAT(ranking_section(board, {spec}), Not(HasSubstr("Models tested")));
  BoardRow row = testing::graded_row(spec, testing::sample_cell(spec, "a|b"));
  row.about.name = "A <b>";
  row.about.link = "https://example.org/?x=y#z";
  row.attempt.tokens_in = 10;
  row.attempt.tokens_out = 20;
  row.attempt.cost_usd = 0.004;
  merge(board, row);
  BoardRow sample = testing::graded_row(spec, testing::sample_cell(spec, "sample"));
  sample.about.sample = true;
  merge(board, sample);
  const std::string text = ranking_section(board, {spec});
  EXPECT_THAT(text, HasSubstr("| Model | Name | Answers | Tokens | Cost |\n"));
  EXPECT_THAT(text, HasSubstr("| a\\|b | [A &lt;b&gt;](https://example.org/?x=y#z) | 1 | 30 | "
                              "$0.0040 |\n"));
  EXPECT_THAT(text, Not(HasSubstr("| sample |  |")));

  for (const Device device : {Device::sim, Device::cuda}) {
    BoardRow cuda = row;
    cuda.key.device = device;
    merge(board, cuda);
  }
  EXPECT_THAT(ranking_section(board, {spec}), HasSubstr("| 2 | 30 | $0.0040 |\n"))
      << "one in C++ and one in CUDA, of one attempt";
  board.entries.erase({"a|b", spec.name, "", Device::sim});
  board.entries.erase({"a|b", spec.name, "", Device::cuda});
  board.entries.erase(row.key);
  EXPECT_THAT(ranking_section(board, {spec}), HasSubstr("No model yet"));
}

TEST(Rankings, AnAttemptWithoutAnAnswerCountsAsZeroAndIsNamed) {
  const ChallengeSpec spec = two_specs()[0];
  Scoreboard board;
  for (const bool quick : {false, true}) {
    CellResult cell = quick ? testing::quick_cell(spec, "q") : testing::sample_cell(spec, "f");
    cell.key.attempt = "1";
    merge(board, testing::graded_row(spec, cell));
    CellResult none = testing::unbuilt_cell(spec);
    none.key.model = cell.key.model;
    none.key.attempt = "2";
    none.build.verdict = Verdict::no_answer;
    none.build.log = "refused";
    merge(board, testing::graded_row(spec, none));
  }
  const std::string text = rankings_document(board, {spec});
  EXPECT_THAT(text, HasSubstr("| 1: **A** 100.0, 2: no answer |"));
  EXPECT_THAT(text, HasSubstr("| 1: **A** 100.0 (quick), 2: no answer |"));
  const auto specs = std::vector{spec};
  const report::Standings all =
      report::make_standings(board, specs, Device::cpu, compare::By::mean);
  for (const report::Standing& s : all.models) {
    EXPECT_EQ(s.player->cells[0].count(), 2u) << s.model;
    EXPECT_NEAR(*s.mean, 50, 0.1) << s.model;
    EXPECT_NEAR(*s.best, 100, 0.1) << s.model;
  }
}

TEST(Rankings, MarkupInNamesAndDetailsIsEscaped) {
  const std::string text = rankings_document(full_board(), two_specs());
  EXPECT_THAT(text, HasSubstr("flawed &lt;b&gt;\\*model\\*&lt;/b&gt;"));
  EXPECT_THAT(text, HasSubstr("Xeon \\| 8481C"));
  EXPECT_THAT(text + ranking_section(full_board(), two_specs()), Not(HasSubstr("<b>")));
}

TEST(Rankings, ReferencesHaveNoRankAndTheFigureIsNamed) {
  Scoreboard board = board_of({{"a reference", Device::cpu}, {"one", Device::cpu}});
  board.models["a reference"].sample = true;
  const auto specs = std::vector{two_specs()[0]};
  EXPECT_THAT(ranking_section(board, specs), HasSubstr("| ref | a reference |"));
  EXPECT_THAT(ranking_section(board, specs), HasSubstr("| 1 | one |"));
  EXPECT_THAT(ranking_section(board, specs), HasSubstr("Ranked by the mean of attempts"));
  EXPECT_THAT(ranking_section(board, specs, "R.md", compare::By::best),
              HasSubstr("Ranked by the best attempt"));
}

TEST(Rankings, EveryRowOfATableHasAsManyCells) {
  std::size_t cells = 0;
  std::istringstream in(ranking_section(full_board(), two_specs()) +
                        rankings_document(full_board(), two_specs()));
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

TEST(Rankings, DevicesAreRankedApart) {
  const Scoreboard board = board_of({{"one", Device::cpu}, {"one", Device::sim}});
  EXPECT_THAT(ranking_section(board, two_specs()), HasSubstr("\n### C++ on the CPU\n"));
  EXPECT_THAT(ranking_section(board, two_specs()), HasSubstr("\n### CUDA on the simulated GPU\n"));
  EXPECT_THAT(rankings_document(board, two_specs()), HasSubstr("\n## C++ on the CPU\n"));
  EXPECT_THAT(rankings_document(board, two_specs()), HasSubstr("\n## CUDA on the simulated GPU\n"));
}

TEST(Rankings, DevicesOfOneModelStandSideBySide) {
  const std::string text = rankings_document(
      board_of({{"both", Device::cpu}, {"both", Device::sim}, {"one", Device::cpu}}), two_specs());
  const std::string table = text.substr(std::min(text.find("\n## Side by side\n"), text.size()));
  const std::size_t cpp = table.find("| both | C++ on the CPU | **A** 100.0 |");
  ASSERT_NE(cpp, std::string::npos) << text;
  EXPECT_THAT(table.substr(table.find('\n', cpp)),
              ::testing::StartsWith("\n| both | CUDA on the simulated GPU | not run |"));
  EXPECT_EQ(table.substr(0, table.find("## How")).find("| one |"), std::string::npos);
}

TEST(Rankings, NoModelOnTwoDevicesNothingSideBySide) {
  const std::string text =
      rankings_document(board_of({{"one", Device::cpu}, {"two", Device::sim}}), two_specs());
  EXPECT_THAT(text, Not(HasSubstr("Side by side")));
}

// --- links between the two -----------------------------------------------------

TEST(Rankings, EachTextLinksToTheOther) {
  EXPECT_THAT(ranking_section(full_board(), two_specs(), "r/my tables.md"),
              HasSubstr("[r/my tables.md](r/my%20tables.md)"));
  EXPECT_THAT(rankings_document(full_board(), two_specs(), "../X.md"),
              HasSubstr("[../X.md](../X.md)"));
}

TEST(Rankings, WithoutAReadmeThereIsNoLink) {
  EXPECT_THAT(rankings_document(full_board(), two_specs(), ""), Not(HasSubstr("](")));
}

// --- large boards --------------------------------------------------------------

// The same answer by that many models.
Scoreboard crowd(int models) {
  BoardEntry entry = testing::graded_entry(two_specs()[0], testing::sample_cell(two_specs()[0]));
  Scoreboard board;
  for (int i = 0; i < models; ++i) {
    entry.cell.key.model = "model_" + std::to_string(1000 + i);
    board.entries[entry.cell.key] = testing::row_of(entry);
  }
  return board;
}

// Tables may grow with the number of models, never with its square, and the README not at all.
TEST(Rankings, GrowNoFasterThanTheBoard) {
  const Scoreboard small = crowd(150), large = crowd(600);
  EXPECT_LT(ranking_section(large, two_specs()).size(),
            ranking_section(small, two_specs()).size() + 100);
  EXPECT_LT(rankings_document(large, two_specs()).size(),
            4 * rankings_document(small, two_specs()).size());
  EXPECT_THAT(rankings_document(large, two_specs()), HasSubstr("| model_1599 |"));
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
  merge(board, testing::graded_row(specs[0], cell));
  const std::string readme = "<!-- assay:begin -->\n<!-- assay:end -->\n";
  const std::string once = replace_section(readme, ranking_section(board, specs));
  EXPECT_EQ(replace_section(once, ""), readme);
}

}  // namespace
}  // namespace assay
