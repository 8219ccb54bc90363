// Tests shipped with answers in CUDA, with the real compiler, workers and devices. Skipped without
// nvcc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "build/builder.h"
#include "cells/cell.h"
#include "sandbox/probe.h"
#include "sandbox/worker_image.h"
#include "spec/spec.h"
#include "support/paths.h"
#include "util/files.h"

namespace assay::cells {
namespace {

namespace fs = std::filesystem;

class OwnTestsInCuda : public ::testing::TestWithParam<const char*> {
 protected:
  OwnTestsInCuda()
      : cache_(fs::temp_directory_path() / ("assay-cuda-tests-" + std::to_string(::getpid()))),
        tier_(sandbox::find_tier(sandbox::worker_image_fd()).tier),
        builder_(tier_, testing::source_dir(), cache_),
        runner_(cases::real_world(builder_), {.tier = tier_, .seed = 1, .filter = {}}),
        spec_(load_spec(fs::path(testing::source_dir()) / "challenges" / GetParam())) {}
  ~OwnTestsInCuda() override {
    std::error_code ec;
    fs::remove_all(cache_, ec);
  }
  void SetUp() override {
    if (!builder_.cuda_toolkit()) GTEST_SKIP() << kNoToolkit;
  }

  std::vector<Mutant> tried(const std::string& tests) {
    Submission answer;
    answer.challenge = spec_.name;
    answer.language = Language::cuda;
    answer.test_source = tests;
    CellResult cell;
    runner_.run_own_tests(spec_, answer, cell, 2);
    EXPECT_EQ(cell.build.verdict, Verdict::ok) << cell.build.log;
    return cell.mutants;
  }

  fs::path cache_;
  sandbox::Tier tier_;
  Builder builder_;
  CellRunner runner_;
  ChallengeSpec spec_;
};

TEST_P(OwnTestsInCuda, OfTheTextbookAcceptWhatIsRightAndRejectWhatIsWrong) {
  const std::vector<Mutant> mutants = tried(read_file(
      fs::path(testing::source_dir()) / "submissions" / "textbook" / GetParam() / "test.cu"));
  EXPECT_GE(std::ranges::count(mutants, true, &Mutant::correct), 2);
  EXPECT_GE(std::ranges::count(mutants, false, &Mutant::correct), 6);
  for (const Mutant& m : mutants)
    EXPECT_TRUE(m.judged_rightly()) << m.subject << ": " << code(m.verdict) << " " << m.reason;
}

INSTANTIATE_TEST_SUITE_P(Challenges, OwnTestsInCuda,
                         ::testing::Values("fused_softmax_topk", "layer_norm_backward"));

}  // namespace
}  // namespace assay::cells
