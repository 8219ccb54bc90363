#include "build/warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kUnused =
    "/src/submission.cpp: In function 'int f(int)':\n"
    "/src/submission.cpp:3:7: warning: unused variable 'x' [-Wunused-variable]\n"
    "    3 |   int x;\n"
    "      |       ^\n";

TEST(Warnings, OfGccAndNvccAreFound) {
  const CompilerWarnings found = warnings_in(
      std::string(kUnused) +
          "/src/a.cu(4): warning #177-D: variable \"y\" was declared but never referenced\n"
          "    int y;\n        ^\n\n"
          "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n",
      false);
  EXPECT_EQ(found.count, 2);
  EXPECT_FALSE(found.cut);
  EXPECT_THAT(
      found.first,
      ElementsAre("submission.cpp:3:7: warning: unused variable 'x' [-Wunused-variable]",
                  "a.cu(4): warning #177-D: variable \"y\" was declared but never referenced"));
}

TEST(Warnings, TheSameCountsOnceAndOnlyTheFirstAreKept) {
  std::string log = std::string(kUnused) + kUnused;
  EXPECT_EQ(warnings_in(log, false).count, 1);
  for (int i = 10; i < 20; ++i)
    log += "/src/a.cpp:" + std::to_string(i) + ":1: warning: \x1b[2Jodd\n";
  const CompilerWarnings found = warnings_in(log, true);
  EXPECT_EQ(found.count, 11);
  EXPECT_TRUE(found.cut);
  ASSERT_EQ(found.first.size(), 5u);
  EXPECT_THAT(found.first[1], Not(HasSubstr("\x1b")));
}

TEST(Warnings, QuotedSourceAndTheLinkerAreNoWarnings) {
  const std::string log =
      "    3 | a:3:1: warning: quoted\n"
      "/usr/bin/ld: /tmp/x.o: in function `f':\n"
      "x.cpp:(.text+0x1): warning: undefined reference to `cudaFree'\n"
      "x.cpp:12: warning: undefined reference to `cudaFree'\n";
  EXPECT_EQ(warnings_in(log, false).count, 0);
  EXPECT_EQ(without_warnings(log), log);
}

TEST(Warnings, LogsWithoutThemBeginWithErrors) {
  const std::string error =
      "/src/submission.cpp: In function 'int g()':\n"
      "/src/submission.cpp:9:1: error: expected ';'\n"
      "    9 | }\n"
      "/src/submission.cpp:9:1: note: here\n";
  EXPECT_EQ(without_warnings(kUnused), "");
  EXPECT_EQ(without_warnings(std::string(kUnused) + error), error);
  EXPECT_EQ(without_warnings(error + kUnused), error);
  EXPECT_EQ(without_warnings(std::string(kUnused) + error + kUnused + error), error + error);
  // The function is named once, before the warning.
  EXPECT_EQ(without_warnings(std::string(kUnused) + "/src/submission.cpp:4:1: error: odd\n"),
            "/src/submission.cpp: In function 'int f(int)':\n"
            "/src/submission.cpp:4:1: error: odd\n");
  const std::string of_nvcc =
      "/src/a.cu(4): warning #177-D: variable \"y\" was declared but never referenced\n"
      "    int y;\n        ^\n\n"
      "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n\n";
  const std::string of_ptxas = "ptxas error   : Entry function 'k' uses too much shared data\n";
  EXPECT_EQ(without_warnings(of_nvcc + of_ptxas), of_ptxas);
  EXPECT_EQ(without_warnings(kUnused + of_nvcc + of_nvcc + error + of_nvcc), error);
  EXPECT_EQ(without_warnings(""), "");
  EXPECT_EQ(without_warnings("no end of line"), "no end of line");
}

TEST(Warnings, SurviveTheCache) {
  CompilerWarnings some{7, {"a", "b", "c", "d", "e"}, true};
  EXPECT_EQ(warnings_from(warnings_text(some)), some);
  EXPECT_EQ(warnings_from(warnings_text({})), CompilerWarnings{});
  for (const char* other : {"", "x\n", "1\n", "1 2\na\n", "-1 0\n", "2 0\na\n", "0 0\na\n"})
    EXPECT_FALSE(warnings_from(other)) << other;
}

}  // namespace
}  // namespace assay
