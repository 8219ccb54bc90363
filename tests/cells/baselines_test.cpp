#include "cells/baselines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases/fake_world.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::cells {
namespace {

namespace fs = std::filesystem;
using assay::testing::error_of;
using testing::Answer;
using testing::case_spec;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Sources compile to libraries that are named after their contents.
class BaselinesTest : public ::testing::Test {
 protected:
  BaselinesTest() {
    spec_.directory = folder_.path / "challenges" / spec_.name;
    fs::create_directories(fs::path(spec_.directory) / "baselines");
    fs::create_directories(folder_.path / "kernels" / "common");
    write("abi.h", "");
    for (const char* name : {"naive", "par"})
      write(std::string("baselines/") + name + ".cpp", name);
    fs::create_directories(folder_.path / "kept");
    world_ = fake_.world();
    world_.kept = folder_.path / "kept";
  }
  void write(const std::string& file, const std::string& text) const {
    write_file_atomically(fs::path(spec_.directory) / file, text);
  }
  // The kernels of naive.cu launch that many times per case.
  void write_kernels(std::uint64_t launches) {
    write("baselines/naive.cu", "kernels");
    launch("kernels", launches);
  }
  void launch(const std::string& library, std::uint64_t launches) {
    fake_.libraries[library].run = [launches](const std::string&, int) {
      Answer answer;
      answer.outcome.device.emplace();
      answer.outcome.device->work.counters.launches = launches;
      return answer;
    };
  }

  assay::testing::TemporaryFolder folder_;
  testing::FakeWorld fake_;
  ChallengeSpec spec_ = testing::spec_with({case_spec("one"), case_spec("time", CaseGroup::timed)});
  cases::World world_;
  const RunOptions options_{};
  cases::SharedAccount account_;
  Baselines baselines_{world_, options_, account_};
};

TEST_F(BaselinesTest, EachLibraryIsThatOfItsFile) {
  const cases::BaselineLibraries libraries = baselines_.libraries(spec_, Language::cpp);
  EXPECT_EQ(libraries.naive, "naive");
  EXPECT_EQ(libraries.par, "par");
}

TEST_F(BaselinesTest, OneThatDoesNotCompileIsAnErrorWithTheCompilersWords) {
  fake_.compile = [](const BuildRequest&) {
    BuildResult result;
    result.record.verdict = Verdict::build_error;
    result.record.log = "par.cpp:7: expected ';'";
    return result;
  };
  const std::string said = error_of([&] { baselines_.library(spec_, "par.cpp"); });
  EXPECT_THAT(said, HasSubstr((fs::path(spec_.directory) / "baselines/par.cpp").string() +
                              " does not compile"));
  EXPECT_THAT(said, HasSubstr("expected ';'"));
}

TEST_F(BaselinesTest, OneThatNothingCompiledIsNotSaidToBeWrong) {
  fake_.compile = [](const BuildRequest&) {
    BuildResult result;
    result.record.verdict = Verdict::skipped;
    result.record.log = "there is no compiler";
    return result;
  };
  const std::string said = error_of([&] { baselines_.library(spec_, "par.cpp"); });
  EXPECT_THAT(said, HasSubstr("par.cpp was not built:\nthere is no compiler"));
}

TEST_F(BaselinesTest, WhatHasNoKernelsHasNoWork) {
  EXPECT_FALSE(baselines_.work(spec_, "naive.cu", "time"));
  EXPECT_THAT(fake_.log, IsEmpty());
}

TEST_F(BaselinesTest, ParInCudaIsTheKernelBesideTheChallenges) {
  write("baselines/par.cu", "not this one");
  EXPECT_FALSE(baselines_.work(spec_, "par.cu", "time"));
  const fs::path kernel = folder_.path / "kernels" / (spec_.name + ".cu");
  write_file_atomically(kernel, "expert");
  launch("expert", 1);
  EXPECT_EQ(Baselines::path(spec_, "par.cu"), kernel);
  EXPECT_EQ(baselines_.work(spec_, "par.cu", "time")->counters.launches, 1u);
}

TEST_F(BaselinesTest, AKernelThatIsWrittenAnewIsCountedAnew) {
  const fs::path kernel = folder_.path / "kernels" / (spec_.name + ".cu");
  write_file_atomically(kernel, "expert");
  launch("old", 2);
  launch("expert", 1);
  EXPECT_EQ(baselines_.work(spec_, "par.cu", "time")->counters.launches, 1u);
  write_file_atomically(kernel, "old");
  Baselines later(world_, options_, account_);
  EXPECT_EQ(later.work(spec_, "par.cu", "time")->counters.launches, 2u);
}

TEST_F(BaselinesTest, AKernelMayIncludeTheInterfaceAndWhatKernelsShare) {
  write_file_atomically(folder_.path / "kernels" / (spec_.name + ".cu"), "expert");
  write_file_atomically(folder_.path / "kernels" / "common" / "tiles.h", "");
  std::vector<std::string> headers;
  fake_.compile = [&](const BuildRequest& request) {
    for (const SourceFile& header : request.headers) headers.push_back(header.name);
    return BuildResult{};
  };
  error_of([&] { baselines_.library(spec_, "par.cu"); });
  EXPECT_THAT(headers, ElementsAre("abi.h", "common/tiles.h"));
}

TEST_F(BaselinesTest, WorkIsFoundOutOnceAndKeptForOtherRuns) {
  write_kernels(3);
  EXPECT_EQ(baselines_.work(spec_, "naive.cu", "time")->counters.launches, 3u);
  EXPECT_EQ(baselines_.work(spec_, "naive.cu", "time")->counters.launches, 3u);
  EXPECT_EQ(fake_.count("run kernels time"), 1);
  Baselines later(world_, options_, account_);
  EXPECT_EQ(later.work(spec_, "naive.cu", "time")->counters.launches, 3u);
  EXPECT_EQ(fake_.count("run kernels time"), 1);
  EXPECT_EQ(later.work(spec_, "naive.cu", "one")->counters.launches, 3u) << "of another case";
  EXPECT_EQ(fake_.count("run kernels one"), 1);
}

TEST_F(BaselinesTest, AFailureIsAnErrorAndTheNextWhoAsksTriesAgain) {
  write_kernels(3);
  const auto right = fake_.libraries["kernels"].run;
  fake_.libraries["kernels"].run = [](const std::string&, int) {
    return testing::ending(Verdict::time_limit);
  };
  EXPECT_THAT(error_of([&] { baselines_.work(spec_, "naive.cu", "time"); }),
              HasSubstr("naive.cu failed the case time: scripted"));
  fake_.libraries["kernels"].run = right;
  EXPECT_EQ(baselines_.work(spec_, "naive.cu", "time")->counters.launches, 3u);
}

}  // namespace
}  // namespace assay::cells
