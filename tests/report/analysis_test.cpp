#include "report/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "boards.h"
#include "report/rankings.h"

namespace assay::report {
namespace {

using testing::full_board;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::two_specs;

TEST(Analysis, HasAPageForEverything) {
  const auto pages = analysis_pages(full_board(), two_specs());
  for (const auto& [path, text] : pages) {
    EXPECT_THAT(text, StartsWith(kGenerated)) << path;
    EXPECT_THAT(text, Not(HasSubstr("<b>"))) << path;
  }
  for (const char* path : {"README.md", "traps.md", "challenges/kv_cache.md", "models/tuned.md"})
    EXPECT_TRUE(pages.contains(path)) << path;
  EXPECT_TRUE(pages.contains("pairs/textbook_against_tuned.md") ||
              pages.contains("pairs/tuned_against_textbook.md"));
}

TEST(Analysis, DependsOnTheBoardOnly) {
  const Scoreboard stored = parse_scoreboard(scoreboard_text(full_board()), "f");
  EXPECT_EQ(analysis_pages(stored, two_specs()), analysis_pages(full_board(), two_specs()));
}

// Every link of a page leads to another.
TEST(Analysis, LinksLeadSomewhere) {
  const auto pages = analysis_pages(full_board(), two_specs());
  for (const auto& [path, text] : pages) {
    for (std::size_t at = 0; (at = text.find("](", at)) != std::string::npos; ++at) {
      const std::string link = text.substr(at + 2, text.find(')', at) - at - 2);
      if (link.find("RANKINGS") != std::string::npos) continue;
      std::string plain;
      for (std::size_t i = 0; i < link.size(); ++i) {
        if (link[i] == '%') {
          plain += static_cast<char>(std::stoi(link.substr(i + 1, 2), nullptr, 16));
          i += 2;
        } else {
          plain += link[i];
        }
      }
      const auto target =
          (std::filesystem::path(path).parent_path() / plain).lexically_normal().string();
      EXPECT_TRUE(pages.contains(target)) << path << ": " << link;
    }
  }
}

TEST(Analysis, OfNothingIsNothing) {
  EXPECT_TRUE(analysis_pages({}, two_specs()).empty());
  AnalysisOptions options;
  options.published["p"] = compare::parse_published("model,challenge,grade\na,x,A\n", "f", "s");
  EXPECT_TRUE(analysis_pages({}, two_specs(), options).contains("published/p.md"));
}

TEST(Analysis, NamesOfPagesStayInTheirFolder) {
  EXPECT_EQ(page_name("GLM-5.1"), "GLM-5.1");
  EXPECT_THAT(page_name("../../etc"), StartsWith("_._.._etc~"));
  EXPECT_THAT(page_name(".."), Not(StartsWith("..")));
  EXPECT_NE(page_name("a/b"), page_name("a:b"));
  EXPECT_LT(page_name(std::string(500, 'x')).size(), 100u);
  EXPECT_FALSE(page_name("").empty());
}

}  // namespace
}  // namespace assay::report
