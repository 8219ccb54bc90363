#include "cells/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "assay/error.h"
#include "cells/cell.h"

namespace assay::cells {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExamplesTest : public ::testing::Test {
 protected:
  ExamplesTest()
      : folder_(fs::temp_directory_path() / ("assay-examples-" + std::to_string(::getpid()))) {
    for (const char* folder : {"baselines", "examples"}) fs::create_directories(folder_ / folder);
    spec_.name = "sample";
    spec_.directory = folder_;
    for (const auto& [name, group] : {std::pair{"basic", CaseGroup::core},
                                      {"empty", CaseGroup::edge},
                                      {"ties", CaseGroup::trap},
                                      {"bf16", CaseGroup::completeness},
                                      {"time", CaseGroup::timed},
                                      {"memory", CaseGroup::resource}}) {
      CaseSpec c;
      c.name = name;
      c.group = group;
      spec_.cases.push_back(c);
    }
  }
  ~ExamplesTest() override { fs::remove_all(folder_); }

  void write(const std::string& file, const std::string& text) const {
    std::ofstream(folder_ / file) << text;
  }
  std::string error() const {
    try {
      load_examples(spec_);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
  bool required(const std::string& targets) const {
    write("examples/wrong_x.cpp", "// fails: " + targets + "\n");
    return breaks_what_is_required(spec_, load_examples(spec_).at(0));
  }

  fs::path folder_;
  ChallengeSpec spec_;
};

TEST_F(ExamplesTest, BaselinesMayIncludeHeadersOfTheirFolders) {
  write("abi.h", "");
  for (const char* folder : {"common", "naive", "par"})
    fs::create_directories(folder_ / "baselines" / folder);
  for (const char* file : {"naive.cpp", "common/half.h", "naive/plain.h", "naive/kernels.cuh",
                           "par/pages.h", "par/notes.md"})
    write(std::string("baselines/") + file, "");
  std::vector<std::string> names;
  for (const SourceFile& header : baseline_headers(spec_)) names.push_back(header.name);
  EXPECT_THAT(names, ElementsAre("abi.h", "common/half.h", "naive/plain.h", "naive/kernels.cuh",
                                 "par/pages.h"));
}

TEST_F(ExamplesTest, AreReadInOrderWithTheirCases) {
  write("examples/wrong_b.cpp", "// fails: basic ties\nint b;\n");
  write("examples/slow_a.cpp", "// slow: time\n");
  write("examples/cheat_c.cpp", "// caught: basic\n");
  write("examples/common.h", "int shared;\n");
  const std::vector<Example> found = load_examples(spec_);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "cheat_c");
  EXPECT_EQ(found[0].kind, Example::Kind::cheat);
  EXPECT_EQ(found[1].name, "slow_a");
  EXPECT_EQ(found[1].kind, Example::Kind::slow);
  EXPECT_EQ(found[2].name, "wrong_b");
  EXPECT_EQ(found[2].kind, Example::Kind::wrong);
  EXPECT_THAT(found[2].targets, ElementsAre("basic", "ties"));
  EXPECT_EQ(found[2].source.name, "wrong_b.cpp");
}

TEST_F(ExamplesTest, ThoseInCudaAreReadApart) {
  write("examples/wrong_a.cpp", "// fails: basic\n");
  write("examples/wrong_b.cu", "// fails: ties\n");
  EXPECT_THAT(load_examples(spec_), ::testing::SizeIs(1));
  const std::vector<Example> found = load_examples(spec_, Language::cuda);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].source.name, "wrong_b.cu");
  EXPECT_EQ(found[0].language, Language::cuda);
  for (CaseSpec& c : spec_.cases) c.on_simulator = c.name != "ties";
  EXPECT_NO_THROW(load_examples(spec_));
  EXPECT_THROW(load_examples(spec_, Language::cuda), Error);  // no case there could catch it
}

TEST_F(ExamplesTest, NoFolderMeansNone) {
  fs::remove(folder_ / "examples");
  EXPECT_TRUE(load_examples(spec_).empty());
}

TEST_F(ExamplesTest, MalformedOnesNameTheFileAndTheRemedy) {
  write("examples/wrong_x.cpp", "// slow: time\n");
  EXPECT_THAT(error(), HasSubstr("wrong_x.cpp:1: the first line must be '// fails: CASE...'"));
  write("examples/wrong_x.cpp", "// fails: bsaic\n");
  EXPECT_THAT(error(), HasSubstr("wrong_x.cpp:1: sample has no case 'bsaic'"));
  write("examples/wrong_x.cpp", "// fails:\n");
  EXPECT_THAT(error(), HasSubstr("names its cases on the first line"));
  fs::rename(folder_ / "examples/wrong_x.cpp", folder_ / "examples/odd.cpp");
  EXPECT_THAT(error(), HasSubstr("an example is named wrong_*, cheat_* or slow_*"));
}

TEST_F(ExamplesTest, MayIncludeTheInterfaceNaiveAndTheHeadersBesideThem) {
  EXPECT_THROW(example_headers(spec_), Error);  // no abi.h
  write("abi.h", "a");
  write("baselines/naive.cpp", "n");
  write("examples/z.h", "z");
  write("examples/common.h", "c");
  write("examples/wrong_x.cpp", "// fails: basic\n");
  std::vector<std::string> names;
  for (const SourceFile& f : example_headers(spec_)) names.push_back(f.name);
  EXPECT_THAT(names, ElementsAre("abi.h", "naive.cpp", "common.h", "z.h"));
  write("baselines/naive.cu", "n");
  write("examples/around.cuh", "c");
  names.clear();
  for (const SourceFile& f : example_headers(spec_, Language::cuda)) names.push_back(f.name);
  EXPECT_THAT(names, ElementsAre("abi.h", "naive.cu", "around.cuh"));
}

// A wrong example must show its fault in the cases that it names; the others need more cases.
TEST_F(ExamplesTest, OnlyWrongOnesAreCheckedOnTheirCasesAlone) {
  write("examples/cheat_a.cpp", "// caught: memory\n");
  write("examples/slow_b.cpp", "// slow: time\n");
  write("examples/wrong_c.cpp", "// fails: ties\n");
  const auto taken = [&](const Example& example, bool every_case) {
    const cases::CaseFilter filter = cases_for(example, every_case);
    std::vector<std::string> names;
    for (const CaseSpec& c : spec_.cases) {
      if (filter.takes(c)) names.push_back(c.name);
    }
    return names;
  };
  const std::vector<Example> found = load_examples(spec_);
  EXPECT_THAT(taken(found.at(0), false), ElementsAre("basic", "empty", "ties", "memory"));
  EXPECT_THAT(taken(found.at(1), false), ElementsAre("basic", "empty", "ties", "time"));
  EXPECT_THAT(taken(found.at(2), false), ElementsAre("ties"));
  EXPECT_THAT(taken(found.at(2), true), ElementsAre("basic", "empty", "ties"));
}

// A model's tests may be required to reject only what every submission must handle.
TEST_F(ExamplesTest, OnlyCasesOfEverySubmissionAreRequired) {
  for (const char* c : {"basic", "empty", "ties"}) EXPECT_TRUE(required(c)) << c;
  for (const char* c : {"bf16", "time", "memory"}) EXPECT_FALSE(required(c)) << c;
  EXPECT_TRUE(required("bf16 ties"));
}

TEST_F(ExamplesTest, TimingIsForTimedCasesAndThoseThatRunAlone) {
  const auto timed = [&](const std::string& targets) {
    write("examples/wrong_x.cpp", "// fails: " + targets + "\n");
    return needs_timing(spec_, load_examples(spec_).at(0));
  };
  EXPECT_TRUE(timed("basic time"));
  EXPECT_FALSE(timed("basic memory"));
  spec_.cases[0].exclusive = true;
  EXPECT_TRUE(timed("basic memory"));
}

}  // namespace
}  // namespace assay::cells
