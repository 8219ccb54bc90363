#include "mutate/known.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "support/error_of.h"
#include "support/paths.h"
#include "util/files.h"

namespace assay::mutate {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string list(const std::string& entries) {
  return R"({"schema": 1, "mutants": [)" + entries + "]}";
}

std::string entry(const std::string& becomes, const std::string& rest = "") {
  return R"({"of": "textbook", "file": "submission.cpp", "line": "x = 0;", "becomes": ")" +
         becomes + R"(", "excuse": "same_result", "reason": "x is never read")" + rest + "}";
}

std::vector<Mutation> mutants() {
  return mutations_of({{"submission.cpp", "x = 0;\nx = 0;\n"}}, "textbook/a");
}

TEST(KnownMutants, AreFoundByWhatIsChanged) {
  const auto known = parse_known_mutants(list(entry("x = 1;")), "mutants.json");
  const auto all = mutants();
  ASSERT_EQ(all.size(), 2u);
  for (const Mutation& m : all) {
    const KnownMutant* const found = find_known(known, "textbook", m);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->reason, "x is never read");
    EXPECT_EQ(found->excuse, Excuse::same_result);
    EXPECT_EQ(find_known(known, "par", m), nullptr);
  }
}

TEST(KnownMutants, AreOfTheirLineAndFileAlone) {
  const Mutation m = mutants().front();
  KnownMutant known{"textbook", "submission.cpp", "x = 0;", "x = 1;", {}, Excuse::cost, ""};
  EXPECT_TRUE(known.is("textbook", m));
  known.line = "x = 2;";
  EXPECT_FALSE(known.is("textbook", m)) << "2 to 1 is another mutant";
  known.line = "x = 0;";
  known.file = "other.h";
  EXPECT_FALSE(known.is("textbook", m));
}

TEST(KnownMutants, MayBeOneOfSeveralLines) {
  const auto known = parse_known_mutants(list(entry("x = 1;", R"(, "nth": 2)")), "mutants.json");
  const auto all = mutants();
  EXPECT_EQ(find_known(known, "textbook", all[0]), nullptr);
  EXPECT_NE(find_known(known, "textbook", all[1]), nullptr);
}

TEST(KnownMutants, ThatAreNoneAreTold) {
  const auto known =
      parse_known_mutants(list(entry("x = 1;") + "," + entry("x = 7;")), "mutants.json");
  const auto left = unmatched(known, "textbook", mutants());
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0]->becomes, "x = 7;");
  EXPECT_THAT(unmatched(known, "par", mutants()), IsEmpty()) << "of another answer";
}

TEST(KnownMutants, AreRefusedWithThePlace) {
  const auto error = [](const std::string& text) {
    return testing::error_of([&] { parse_known_mutants(text, "mutants.json"); });
  };
  EXPECT_THAT(error(list(entry("x = 1;") + "," + entry("x = 1;"))), HasSubstr("listed twice"));
  EXPECT_THAT(error(list(entry("x = 1;", R"(, "why": 1)"))), HasSubstr("/mutants/0"));
  EXPECT_THAT(error(R"({"schema": 1})"), HasSubstr("mutants.json"));
}

// An entry that is not a mutant shows that the answer was edited since: its reason may no longer
// hold.
TEST(KnownMutants, OfTheChallengesAreMutants) {
  const fs::path root = testing::source_dir();
  for (const auto& folder : fs::directory_iterator(root / "challenges")) {
    const std::string challenge = folder.path().filename();
    std::map<std::string, std::vector<Mutation>> all;
    for (const KnownMutant& k : load_known_mutants(folder.path())) {
      const fs::path answer =
          k.of == "par" ? folder.path() / "baselines" : root / "submissions" / k.of / challenge;
      if (!all.contains(k.of + k.file))
        all[k.of + k.file] = mutations_of({{k.file, read_file(answer / k.file)}}, "");
      EXPECT_TRUE(unmatched({k}, k.of, all[k.of + k.file]).empty())
          << challenge << " lists '" << k.becomes << "', which is no mutant of " << k.of;
    }
  }
}

}  // namespace
}  // namespace assay::mutate
