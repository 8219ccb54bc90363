#include "cells/mutants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "assay/error.h"
#include "cases/fake_world.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay::cells {
namespace {

using mutate::Fate;
using testing::Answer;
using testing::case_spec;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const std::string kRight = "x = a + 1;";

// Libraries are files that hold their source, so that a script can define how each behaves.
class MutantsTest : public ::testing::Test {
 protected:
  MutantsTest() {
    world_.compile = [this](const BuildRequest& request) {
      BuildResult result;
      const std::string& source = request.sources.front().contents;
      requests_.push_back(request);
      if (source == broken_) {
        result.record.verdict = Verdict::build_error;
        return result;
      }
      const std::string code = source == same_ ? kRight : source;
      const auto file = folder_.path / sha256_hex(source).substr(0, 8);
      write_file_atomically(file, code);
      result.library = file;
      world_.libraries[file.string()].run_drawn = [this, code](const CaseSpec& c) {
        limits_[c.name] = c.time_limit_s;
        return behaviour_ ? behaviour_(code, c.name) : Answer();
      };
      return result;
    };
  }

  // Runs the mutant that turns the answer into `becomes`.
  mutate::Result run(const std::string& becomes,
                     const std::vector<mutate::KnownMutant>& known = {}) {
    const cases::World world = world_.world();
    const MutantBench bench(world, options_, spec_, {"textbook", sources_, {{"abi.h", ""}}});
    world_.log.clear();
    for (const mutate::Mutation& m : mutate::mutations_of(sources_, "textbook/copying")) {
      if (m.after == becomes) return bench.run(m, known);
    }
    throw Error("no such mutant: " + becomes);
  }

  assay::testing::TemporaryFolder folder_;
  testing::FakeWorld world_;
  RunOptions options_;
  std::vector<SourceFile> sources_{{"submission.cpp", kRight}};
  std::string broken_, same_;
  std::function<Answer(const std::string& code, const std::string& case_name)> behaviour_;
  std::map<std::string, double> limits_;
  std::vector<BuildRequest> requests_;
  ChallengeSpec spec_ = testing::spec_with(
      {case_spec("one"), case_spec("two", CaseGroup::edge), case_spec("three", CaseGroup::trap),
       case_spec("optional", CaseGroup::completeness), case_spec("memory", CaseGroup::resource),
       case_spec("time", CaseGroup::timed)});
};

TEST_F(MutantsTest, DieByTheFirstCaseThatFails) {
  behaviour_ = [](const std::string& code, const std::string& name) {
    return code != kRight && name == "two" ? testing::wrong() : Answer();
  };
  const mutate::Result result = run("x = a - 1;");
  EXPECT_EQ(result.fate, Fate::killed);
  EXPECT_EQ(result.case_name, "two");
  EXPECT_EQ(result.verdict, Verdict::wrong_answer);
  EXPECT_THAT(result.detail, HasSubstr("not a copy"));
}

TEST_F(MutantsTest, StopAtTheFirstFailure) {
  behaviour_ = [](const std::string& code, const std::string&) {
    return code != kRight ? testing::wrong() : Answer();
  };
  EXPECT_EQ(run("x = a - 1;").fate, Fate::killed);
  EXPECT_EQ(world_.entries("run ").size(), 1u);
}

TEST_F(MutantsTest, RunTheShortCasesFirst) {
  behaviour_ = [](const std::string& code, const std::string& name) {
    if (code != kRight && name == "two") return testing::wrong();
    return testing::taking(name == "one" ? 20 : name == "two" ? 10 : name == "three" ? 5 : 30);
  };
  EXPECT_EQ(run("x = a - 1;").case_name, "two");
  EXPECT_THAT(world_.entries("run "), ElementsAre(EndsWith(" three"), EndsWith(" two")));
}

TEST_F(MutantsTest, DieByWrongOutputsInCasesOfTimeAndMemory) {
  for (const std::string measuring : {"memory", "time"}) {
    behaviour_ = [&](const std::string& code, const std::string& name) {
      return code != kRight && name == measuring ? testing::wrong() : Answer();
    };
    const mutate::Result result = run("x = a - 1;");
    EXPECT_EQ(result.fate, Fate::killed);
    EXPECT_EQ(result.case_name, measuring);
    EXPECT_TRUE(result.by_measuring);
  }
}

TEST_F(MutantsTest, RunCasesOfTimeAndMemoryLastHoweverShort) {
  behaviour_ = [](const std::string& code, const std::string& name) {
    if (code != kRight) return testing::wrong();
    const bool measuring = name == "memory" || name == "time";
    return testing::taking(measuring ? 5 : name == "three" ? 10 : 20);
  };
  const mutate::Result result = run("x = a - 1;");
  EXPECT_EQ(result.case_name, "three");
  EXPECT_FALSE(result.by_measuring);
}

TEST_F(MutantsTest, MayBeSlowInCasesOfTimeAndMemory) {
  for (CaseSpec& c : spec_.cases) c.time_limit_s = 20;
  run("x = a - 1;");
  EXPECT_EQ(limits_["three"], 1);
  EXPECT_EQ(limits_["memory"], 20);
  EXPECT_EQ(limits_["time"], 20);
}

TEST_F(MutantsTest, DieByACapabilityThatTheAnswerHas) {
  behaviour_ = [](const std::string& code, const std::string& name) {
    return code != kRight && name == "optional" ? testing::wrong() : Answer();
  };
  EXPECT_EQ(run("x = a - 1;").case_name, "optional");
  behaviour_ = [](const std::string& code, const std::string& name) {
    return code != kRight && name == "optional" ? testing::ending(Verdict::unsupported) : Answer();
  };
  EXPECT_EQ(run("x = a - 1;").fate, Fate::killed) << "it has it no more";
}

TEST_F(MutantsTest, AreNotAskedForACapabilityThatTheAnswerLacks) {
  behaviour_ = [](const std::string& code, const std::string& name) {
    if (name != "optional") return Answer();
    return code == kRight ? testing::ending(Verdict::unsupported) : testing::wrong();
  };
  EXPECT_EQ(run("x = a - 1;").fate, Fate::survived);
  EXPECT_EQ(world_.entries("run ").size(), 5u);
}

TEST_F(MutantsTest, AreListedOnlyWhereTheySurvive) {
  const std::vector<mutate::KnownMutant> known{
      {"textbook", "submission.cpp", kRight, "x = a - 1;", {}, mutate::Excuse::cost, "slower"}};
  EXPECT_EQ(run("x = a - 1;", known).fate, Fate::listed);
  EXPECT_EQ(run("x = a + 2;", known).fate, Fate::survived);
  behaviour_ = [](const std::string& code, const std::string&) {
    return code != kRight ? testing::wrong() : Answer();
  };
  const mutate::Result killed = run("x = a - 1;", known);
  EXPECT_EQ(killed.fate, Fate::killed);
  EXPECT_TRUE(killed.known) << "the list is wrong about it";
}

TEST_F(MutantsTest, DieByTheirTimeLimitThatIsShort) {
  behaviour_ = [](const std::string& code, const std::string& name) {
    if (code != kRight) return testing::ending(Verdict::time_limit);
    return testing::taking(name == "one" ? 1.5 : 0.001);
  };
  const mutate::Result result = run("x = a - 1;");
  EXPECT_EQ(result.fate, Fate::killed);
  EXPECT_EQ(result.verdict, Verdict::time_limit);
  behaviour_ = [](const std::string&, const std::string& name) {
    return testing::taking(name == "one" ? 1.5 : 0.001);
  };
  run("x = a - 1;");
  EXPECT_EQ(limits_.at("one"), 4.5) << "three times what the answer took";
  EXPECT_EQ(limits_.at("two"), 1) << "at least";
}

TEST_F(MutantsTest, ThatAreNoMutantsDoNotRun) {
  broken_ = "x = a - 1;";
  EXPECT_EQ(run(broken_).fate, Fate::does_not_compile);
  EXPECT_EQ(world_.entries("run ").size(), 0u);
  broken_.clear();
  same_ = "x = a - 1;";
  EXPECT_EQ(run(same_).fate, Fate::same_code);
  EXPECT_EQ(world_.entries("run ").size(), 0u);
}

TEST_F(MutantsTest, OfAHeaderAreIncludedNotCompiled) {
  sources_ = {{"par.cpp", "y = 1;"}, {"par/x.h", kRight}};
  run("x = a - 1;");
  const BuildRequest& last = requests_.back();
  ASSERT_EQ(last.sources.size(), 1u);
  EXPECT_EQ(last.sources[0].contents, "y = 1;");
  ASSERT_EQ(last.headers.size(), 2u);
  EXPECT_EQ(last.headers[1].contents, "x = a - 1;");
}

TEST_F(MutantsTest, OfAWrongAnswerSayNothing) {
  behaviour_ = [](const std::string&, const std::string& name) {
    return name == "three" ? testing::wrong() : Answer();
  };
  EXPECT_THAT(assay::testing::error_of([&] { run("x = a - 1;"); }),
              HasSubstr("textbook/copying fails the case three unchanged"));
  broken_ = kRight;
  EXPECT_THAT(assay::testing::error_of([&] { run("x = a - 1;"); }),
              HasSubstr("does not compile unchanged"));
}

}  // namespace
}  // namespace assay::cells
