#include "submission/assemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace assay {
namespace {

using ::testing::ElementsAre;

const std::vector<SourceFile> kFiles = {{"z.h", "z"},          {"submission.cu", "cuda"},
                                        {"test.cpp", "tests"}, {"submission.cpp", "cpp"},
                                        {"kernel.cuh", "k"},   {"a.cc", "a"}};

std::vector<std::string> names_of(const Submission& s) {
  std::vector<std::string> names;
  for (const SourceFile& file : s.sources) names.push_back(file.name);
  return names;
}

TEST(Assemble, TheMainFileComesFirstAndTheTestsApart) {
  const Submission s = submission_from(kFiles, Language::cpp);
  EXPECT_THAT(names_of(s), ElementsAre("submission.cpp", "a.cc", "z.h"));
  EXPECT_EQ(s.test_source, "tests");
  EXPECT_EQ(s.device(), Device::cpu);
}

TEST(Assemble, InCudaNothingOfCppIsTaken) {
  const Submission s = submission_from(kFiles, Language::cuda);
  EXPECT_THAT(names_of(s), ElementsAre("submission.cu", "kernel.cuh", "z.h"));
  EXPECT_EQ(s.test_source, "");
  EXPECT_EQ(s.device(), Device::sim);
}

}  // namespace
}  // namespace assay
