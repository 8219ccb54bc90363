// docs/verdicts.md lists exactly what the program knows: every verdict by its code and name, and
// every violation of the protocol by its words.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "assay/results.h"
#include "processes/protocol_violation.h"
#include "support/paths.h"

namespace assay {
namespace {

// What the pattern's group matches in every line that the whole pattern matches.
std::vector<std::string> found_in_page(const std::string& pattern) {
  std::ifstream page(testing::source_dir() + "/docs/verdicts.md");
  const std::regex regex(pattern);
  std::vector<std::string> found;
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (std::regex_match(line, match, regex)) found.push_back(match[1]);
  }
  return found;
}

TEST(VerdictsPage, HasASectionForEveryVerdictInItsOrder) {
  std::vector<std::string> verdicts;
  for (auto i = static_cast<int>(Verdict::harness_error); i <= static_cast<int>(Verdict::ok); ++i) {
    const auto verdict = static_cast<Verdict>(i);
    verdicts.push_back(fmt::format("{} ({})", code(verdict), description(verdict)));
  }
  EXPECT_EQ(found_in_page("## (.*)"), verdicts);
}

TEST(VerdictsPage, HasEveryViolationOfTheProtocolInItsWords) {
  const std::regex argument("\\{[^}]*\\}");
  std::vector<std::string> violations;
  for (const processes::ViolationRow& row : processes::kViolations)
    violations.push_back(std::regex_replace(std::string(row.words), argument, "..."));
  EXPECT_EQ(found_in_page("\\| `([^`]*)` \\|.*"), violations);
}

}  // namespace
}  // namespace assay
