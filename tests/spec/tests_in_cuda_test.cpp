#include "spec/tests_in_cuda.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "spec/spec.h"
#include "support/paths.h"
#include "util/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class TestsInCudaTest : public ::testing::Test {
 protected:
  TestsInCudaTest()
      : folder_(fs::temp_directory_path() / ("assay-tests-in-cuda-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "examples");
    spec_.directory = folder_;
    spec_.weights = {.correctness = 75,
                     .accuracy = 0,
                     .performance = 20,
                     .resources = 0,
                     .completeness = 0,
                     .tests = 5};
    CaseSpec timed;
    timed.group = CaseGroup::timed;
    spec_.cases.push_back(timed);
  }
  ~TestsInCudaTest() override { fs::remove_all(folder_); }

  void example(const char* name) const {
    write_file_atomically(folder_ / "examples" / name, "// fails: basic\n");
  }

  fs::path folder_;
  ChallengeSpec spec_;
};

TEST_F(TestsInCudaTest, TakeAWrongExampleInCuda) {
  EXPECT_FALSE(has_tests_in_cuda(spec_));
  for (const char* other : {"wrong_a.cpp", "slow_b.cu", "around_naive.cuh"}) example(other);
  EXPECT_FALSE(has_tests_in_cuda(spec_));
  example("wrong_c.cu");
  EXPECT_TRUE(has_tests_in_cuda(spec_));
  spec_.directory.clear();
  EXPECT_FALSE(has_tests_in_cuda(spec_));
}

TEST_F(TestsInCudaTest, WithoutThemThePointsGoToTheOthers) {
  EXPECT_EQ(spec_for(Device::sim, spec_).weights.tests, 0);
  EXPECT_NEAR(spec_for(Device::sim, spec_).weights.correctness, 75 / 0.95, 1e-9);
  example("wrong_c.cu");
  EXPECT_EQ(spec_for(Device::sim, spec_).weights.tests, 5);
  EXPECT_EQ(spec_for(Device::sim, spec_).weights.correctness, 75);
}

// With fewer, each example would be worth too much.
TEST(TestsInCuda, EveryChallengeHasSevenWrongExamplesOrMore) {
  const fs::path challenges = fs::path(testing::source_dir()) / "challenges";
  for (const fs::directory_entry& folder : fs::directory_iterator(challenges)) {
    if (!fs::exists(folder.path() / "spec.json")) continue;
    const fs::directory_iterator examples(folder.path() / "examples");
    const auto wrong = std::count_if(begin(examples), end(examples), [](const auto& entry) {
      const std::string name = entry.path().filename();
      return name.starts_with("wrong_") && name.ends_with(".cu");
    });
    EXPECT_GE(wrong, 7) << folder.path();
  }
}

}  // namespace
}  // namespace assay
