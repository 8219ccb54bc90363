#include "cells/test_setting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cases/fake_world.h"
#include "util/files.h"

namespace assay::cells {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;

// A challenge with implementations in both languages: challenges/copying under a root.
class TestSettingTest : public ::testing::Test {
 protected:
  TestSettingTest()
      : root_(fs::temp_directory_path() / ("assay-test-setting-" + std::to_string(::getpid()))) {
    spec_.directory = root_ / "challenges" / "copying";
    fs::create_directories(fs::path(spec_.directory) / "examples");
    fs::create_directories(fs::path(spec_.directory) / "baselines");
    write("abi.h", "abi.h");
    for (const char* file : {"naive.cpp", "par.cpp", "naive.cu"})
      write(std::string("baselines/") + file, file);
    write("examples/wrong_a.cpp", "// fails: basic\n");
    write("examples/wrong_b.cu", "// fails: basic\n");
    write("examples/slow_c.cu", "// slow: basic\n");
    write("examples/around.h", "h");
    write("examples/around.cuh", "cuh");
  }
  ~TestSettingTest() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    write_file_atomically(fs::path(spec_.directory) / file, text);
  }
  std::vector<std::string> names(Language language) const {
    std::vector<std::string> found;
    for (const TestSubject& s : test_subjects(spec_, language))
      found.push_back((s.correct ? "right " : "") + s.name);
    return found;
  }
  static std::vector<std::string> names(const std::vector<SourceFile>& files) {
    std::vector<std::string> found;
    for (const SourceFile& f : files) found.push_back(f.name);
    return found;
  }

  fs::path root_;
  ChallengeSpec spec_ = testing::spec_with({testing::case_spec("basic")});
};

TEST_F(TestSettingTest, SubjectsAreThoseOfTheLanguage) {
  EXPECT_THAT(names(Language::cpp), ElementsAre("right naive", "right par", "wrong_a"));
  EXPECT_THAT(names(Language::cuda), ElementsAre("right naive", "right slow_c", "wrong_b"));
}

TEST_F(TestSettingTest, TheKernelIsParWhereThereIsOne) {
  fs::create_directories(root_ / "kernels" / "common");
  write_file_atomically(root_ / "kernels" / "copying.cu", "the kernel");
  write_file_atomically(root_ / "kernels" / "common" / "warp.h", "");
  const std::vector<TestSubject> subjects = test_subjects(spec_, Language::cuda);
  ASSERT_EQ(subjects.at(1).name, "par");
  EXPECT_TRUE(subjects[1].correct);
  EXPECT_THAT(names(subject_request(spec_, subjects[1]).headers), Contains("common/warp.h"));
}

// All subjects have the same file name.
TEST_F(TestSettingTest, SubjectsAreCompiledInTheirLanguage) {
  const BuildRequest cuda = subject_request(spec_, test_subjects(spec_, Language::cuda).back());
  EXPECT_EQ(cuda.language, Language::cuda);
  EXPECT_TRUE(cuda.assembly);
  EXPECT_THAT(names(cuda.sources), ElementsAre("implementation.cu"));
  EXPECT_THAT(names(cuda.headers), ElementsAre("abi.h", "naive.cu", "around.cuh"));
  const BuildRequest cpp = subject_request(spec_, test_subjects(spec_, Language::cpp).back());
  EXPECT_EQ(cpp.language, Language::cpp);
  EXPECT_THAT(names(cpp.sources), ElementsAre("implementation.cpp"));
  EXPECT_THAT(names(cpp.headers), ElementsAre("abi.h", "naive.cpp", "around.h"));
  EXPECT_THAT(names(tests_request(spec_, Language::cuda, "").sources), ElementsAre("test.cu"));
}

TEST_F(TestSettingTest, OnlyWhatTestsAndSwitchboardShareIsGlobal) {
  spec_.required_symbols = {"copy"};
  EXPECT_TRUE(tests_request(spec_, Language::cpp, "").assembly);
  const BuildRequest local =
      local_tests_request(spec_,
                          "\t.globl\tmalloc\nmalloc:\n\t.globl\tcopy\ncopy:\n"
                          "\t.globl\tassay_self_test\nassay_self_test:\n\tcall\tfree@PLT\n");
  EXPECT_TRUE(local.object);
  EXPECT_EQ(local.sources.at(0).contents,
            "malloc:\n\t.globl\tcopy\ncopy:\n"
            "\t.globl\tassay_self_test\nassay_self_test:\n\tcall\tfree@PLT\n");
}

class TryTestsTest : public ::testing::Test {
 protected:
  processes::Outcome tried(const processes::Outcome& self_test) {
    world_.libraries["them"].self_test = self_test;
    processes::WorkerSettings settings;
    settings.library = "them";
    settings.spec = &spec_;
    settings.device.emplace();
    return try_tests(world_.world(), settings);
  }

  testing::FakeWorld world_;
  ChallengeSpec spec_ = testing::spec_with({});
};

TEST_F(TryTestsTest, WhatTheDeviceFindsFailsWhateverTheTestsReturn) {
  processes::DeviceReport report;
  EXPECT_EQ(tried({.device = report}).verdict, Verdict::ok);
  report.findings = 1;
  report.first_finding = "a race";
  const processes::Outcome outcome = tried({.device = report});
  EXPECT_EQ(outcome.verdict, Verdict::device_error);
  EXPECT_EQ(outcome.detail, "a race");
  EXPECT_EQ(outcome.status, 0);
}

TEST_F(TryTestsTest, WhatDoesNotLoadIsNotTried) {
  world_.libraries["them"].load = {.verdict = Verdict::load_error, .detail = "no"};
  EXPECT_EQ(tried({}).verdict, Verdict::load_error);
  EXPECT_EQ(world_.count("test them"), 0);
}

}  // namespace
}  // namespace assay::cells
