#include "build/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build/builder.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

TEST(Target, NativeIsWhatThisMachineRuns) {
  EXPECT_NO_THROW(require_target(find_compiler(), "native"));
  EXPECT_FALSE(instruction_sets(find_compiler(), "native").empty());
}

TEST(Target, ANameThatTheCompilerDoesNotKnowIsRefusedWithExamples) {
  for (const char* unknown : {"quantum", "", "native -O0", "x86-64;true", "$(true)"}) {
    EXPECT_THAT(testing::error_of([&] { require_target(find_compiler(), unknown); }),
                AllOf(HasSubstr("does not know the target"), HasSubstr("x86-64-v3")))
        << unknown;
  }
}

TEST(Target, ACompilerMayLieAnywhere) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path compiler = folder.path / "my g++'s";
  std::filesystem::create_symlink(find_compiler(), compiler);
  EXPECT_FALSE(instruction_sets(compiler, "native").empty());
}

#if defined(__x86_64__)
TEST(Target, HasTheInstructionSetsOfItsLevel) {
  const auto v3 = instruction_sets(find_compiler(), "x86-64-v3");
  EXPECT_THAT(v3, IsSupersetOf({"AVX2", "FMA", "BMI2"}));
  EXPECT_FALSE(v3.contains("AVX512F"));
  EXPECT_TRUE(instruction_sets(find_compiler(), "x86-64-v4").contains("AVX512F"));
  EXPECT_FALSE(instruction_sets(find_compiler(), "x86-64").contains("AVX"));
  EXPECT_FALSE(instruction_sets(find_compiler(), "znver3").contains("znver3"));
}

TEST(Target, ALowerLevelRunsEverywhere) {
  EXPECT_NO_THROW(require_target(find_compiler(), "x86-64"));
}

// No processor has the instructions of both.
TEST(Target, WhatTheMachineLacksIsNamed) {
  const auto here = instruction_sets(find_compiler(), "native");
  for (const char* target : {"btver1", "sapphirerapids", "bdver4"}) {
    std::string missing;
    for (const std::string& set : instruction_sets(find_compiler(), target))
      if (missing.empty() && !here.contains(set)) missing = set;
    if (missing.empty()) continue;
    EXPECT_THAT(
        testing::error_of([&] { require_target(find_compiler(), target); }),
        AllOf(HasSubstr(std::string("cannot run code for --march ") + target), HasSubstr(missing)));
    return;
  }
  FAIL() << "a processor of Intel's and AMD's at once";
}
#endif

}  // namespace
}  // namespace assay
