#include "run/own_tests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "fake_world.h"
#include "util/files.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A challenge of naive, par and one wrong example, each of whose text is its name. What is linked has
// the name of its implementation.
class OwnTestsTest : public ::testing::Test {
 protected:
  OwnTestsTest()
      : folder_(fs::temp_directory_path() / ("assay-own-tests-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "examples");
    spec_.directory = folder_;
    for (const char* name : {"naive", "par"}) write(std::string(name) + ".cpp", name);
    write("abi.h", "");
    write("examples/wrong_a.cpp", "// fails: basic\nwrong_a");
    write("examples/slow_b.cpp", "// slow: basic\nslow_b");
    world_.compile = [this](const BuildRequest& request) { return built(request); };
    world_.libraries["wrong_a"].self_test.status = 7;
  }
  ~OwnTestsTest() override { fs::remove_all(folder_); }

  void write(const std::string& file, const std::string& text) const {
    write_file_atomically(folder_ / file, text);
  }
  BuildResult built(const BuildRequest& request) const {
    BuildResult result;
    const std::string text =
        request.objects.empty() ? request.sources.at(0).contents : request.objects.at(0).string();
    result.library = text.substr(text.find('\n') + 1);
    if (does_not_build_ == result.library.string() + (request.object ? ".o" : ".so")) {
      result.record.verdict = Verdict::build_error;
      result.record.log = "error: no";
    }
    return result;
  }
  std::vector<Mutant> run() {
    WorkerSettings settings;
    settings.spec = &spec_;
    return run_own_tests(world_.world(), spec_, settings, "the tests", 1);
  }

  fs::path folder_;
  testing::FakeWorld world_;
  ChallengeSpec spec_ = testing::spec_with({testing::case_spec("basic")});
  std::string does_not_build_;
};

TEST_F(OwnTestsTest, AreTriedOnNaiveParAndEveryWrongExample) {
  const auto mutants = run();
  ASSERT_EQ(mutants.size(), 3u);
  EXPECT_EQ(mutants[0].subject, "naive");
  EXPECT_TRUE(mutants[0].correct);
  EXPECT_EQ(mutants[0].verdict, TestVerdict::accepted);
  EXPECT_EQ(mutants[1].subject, "par");
  EXPECT_TRUE(mutants[1].judged_rightly());
  EXPECT_EQ(mutants[2].subject, "wrong_a");
  EXPECT_FALSE(mutants[2].correct);
  EXPECT_EQ(mutants[2].verdict, TestVerdict::rejected);
  EXPECT_EQ(mutants[2].reason, "returned 7");
  EXPECT_TRUE(mutants[2].judged_rightly());
}

TEST_F(OwnTestsTest, OnesThatAcceptEverythingMissTheWrongExample) {
  world_.libraries["wrong_a"].self_test.status = 0;
  const auto mutants = run();
  EXPECT_EQ(mutants[2].verdict, TestVerdict::accepted);
  EXPECT_FALSE(mutants[2].judged_rightly());
}

TEST_F(OwnTestsTest, ACrashUnderTheTestsIsARejection) {
  world_.libraries["par"].self_test = {.verdict = Verdict::runtime_error, .detail = "SIGSEGV"};
  world_.libraries["wrong_a"].load = {.verdict = Verdict::load_error, .detail = "no symbol"};
  const auto mutants = run();
  EXPECT_EQ(mutants[1].verdict, TestVerdict::rejected);
  EXPECT_EQ(mutants[1].reason, "SIGSEGV");
  EXPECT_FALSE(mutants[1].judged_rightly());
  EXPECT_EQ(mutants[2].verdict, TestVerdict::rejected);
}

TEST_F(OwnTestsTest, TestsThatDoNotCompileAcceptAndRejectNothing) {
  does_not_build_ = "the tests.o";
  for (const Mutant& m : run()) {
    EXPECT_EQ(m.verdict, TestVerdict::not_built) << m.subject;
    EXPECT_EQ(m.reason, "error: no");
  }
  EXPECT_TRUE(world_.log.empty());
}

TEST_F(OwnTestsTest, WhatCannotBeLinkedIsTheTestsFault) {
  does_not_build_ = "par.so";
  EXPECT_EQ(run()[1].verdict, TestVerdict::not_built);
}

TEST_F(OwnTestsTest, AnImplementationThatDoesNotCompileIsOurs) {
  does_not_build_ = "wrong_a.o";
  const auto mutants = run();
  EXPECT_EQ(mutants[0].verdict, TestVerdict::accepted);
  EXPECT_EQ(mutants[2].verdict, TestVerdict::not_run);
}

TEST_F(OwnTestsTest, TheirImplementationsHaveTheSameNameWhoeverTheyAre) {
  std::vector<std::string> names;
  world_.compile = [&](const BuildRequest& request) {
    if (request.object) names.push_back(request.sources.at(0).name);
    return built(request);
  };
  run();
  EXPECT_THAT(names, ElementsAre("test.cpp", "implementation.cpp", "implementation.cpp",
                                 "implementation.cpp"));
}

}  // namespace
}  // namespace assay::run
