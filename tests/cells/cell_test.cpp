#include "cells/cell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "assay/error.h"
#include "cases/fake_world.h"
#include "records/lookup.h"
#include "util/files.h"
#include "util/transient_fault.h"

namespace assay::cells {
namespace {

namespace fs = std::filesystem;
using testing::case_spec;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::ending;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Sources compile to libraries that are named after their contents.
class CellTest : public ::testing::Test {
 protected:
  CellTest() : folder_(fs::temp_directory_path() / ("assay-cell-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "baselines");
    spec_.directory = folder_;
    for (const char* name : {"naive", "par"})
      write_file_atomically(folder_ / "baselines" / (std::string(name) + ".cpp"), name);
    write_file_atomically(folder_ / "abi.h", "");
  }
  ~CellTest() override { fs::remove_all(folder_); }

  static Submission submission(const std::string& name, Language language = Language::cpp) {
    Submission s;
    s.model = "model of " + name;
    s.challenge = "copying";
    s.language = language;
    s.sources = {{main_file(language), name}};
    return s;
  }
  CellRunner runner(const cases::World& world, cases::CaseFilter filter = {}) const {
    return CellRunner(world, {.tier = {}, .seed = 7, .filter = std::move(filter)});
  }
  // A world in which `fault` happens whenever a worker for that library is made.
  template <class Fault>
  cases::World with_fault(const std::string& library, Fault fault) {
    cases::World world = world_.world();
    world.make_worker = [usual = world.make_worker, library, fault](
                            const processes::WorkerSettings& settings, processes::Arena& input,
                            std::size_t bytes, processes::Arena* device) {
      if (settings.library == library) fault();
      return usual(settings, input, bytes, device);
    };
    return world;
  }

  fs::path folder_;
  testing::FakeWorld world_;
  ChallengeSpec spec_ =
      testing::spec_with({case_spec("one"), case_spec("two"), case_spec("time", CaseGroup::timed)});
};

TEST_F(CellTest, ACheckedCellSaysWhoseItIsAndWhatWasFound) {
  CellRunner runner = this->runner(world_.world());
  const CellResult cell = runner.check(spec_, submission("a"));
  EXPECT_EQ(cell.key, (CellKey{"model of a", "copying", "", Device::cpu}));
  EXPECT_EQ(cell.spec_hash, "spec-hash");
  EXPECT_EQ(cell.seed, 7u);
  EXPECT_EQ(cell.build.verdict, Verdict::ok);
  EXPECT_EQ(cell.build.source_hash, source_hash(submission("a")));
  EXPECT_EQ(cell.cases.size(), 2u);
  EXPECT_THAT(cell.cases, Each(Field(&CaseResult::verdict, Verdict::ok)));
}

TEST_F(CellTest, ACellInCppSaysForWhichTargetItWasCompiled) {
  cases::World world = world_.world();
  world.target = "x86-64-v3";
  CellRunner runner = this->runner(world);
  EXPECT_EQ(runner.check(spec_, submission("a")).target, "x86-64-v3");
  world_.libraries["a"].run = [](const auto&, int) {
    testing::Answer answer;
    answer.outcome.device.emplace();
    return answer;
  };
  EXPECT_EQ(runner.check(spec_, submission("a", Language::cuda)).target, "native");
}

TEST_F(CellTest, WhatDoesNotCompileIsNotRun) {
  world_.compile = [](const BuildRequest&) {
    BuildResult result;
    result.record.verdict = Verdict::build_error;
    return result;
  };
  CellRunner runner = this->runner(world_.world());
  std::vector<CellResult> cells{runner.check(spec_, submission("a"))};
  runner.time_together(spec_, cells);
  EXPECT_EQ(cells[0].build.verdict, Verdict::build_error);
  EXPECT_THAT(cells[0].cases, IsEmpty());
  EXPECT_THAT(world_.log, IsEmpty());
}

TEST_F(CellTest, ARejectedSubmissionIsNotCompiled) {
  Submission rejected = submission("a");
  rejected.rejected = "a link";
  world_.compile = [](const BuildRequest&) -> BuildResult { throw Error("compiled"); };
  CellRunner runner = this->runner(world_.world());
  const CellResult cell = runner.check(spec_, rejected);
  EXPECT_EQ(cell.build.verdict, Verdict::build_error);
  EXPECT_EQ(cell.build.log, "a link");
}

// --- faults of the harness
// ------------------------------------------------------------------------

TEST_F(CellTest, AnyExceptionEndsTheCellAndNoMore) {
  const std::pair<std::function<void()>, const char*> kFaults[] = {
      {[] { throw std::bad_alloc(); }, "out of memory"},
      {[] { throw Error("no process"); }, "no process"},
      {[] { throw fs::filesystem_error("gone", std::make_error_code(std::errc::io_error)); },
       "gone"},
      {[] { throw std::logic_error("handle"); }, "handle"}};
  for (const auto& [fault, says] : kFaults) {
    CellRunner runner = this->runner(with_fault("a", fault));
    const CellResult cell = runner.check(spec_, submission("a"));
    EXPECT_EQ(cell.build.verdict, Verdict::harness_error) << says;
    EXPECT_THAT(cell.build.log, HasSubstr(says));
    EXPECT_THAT(cell.faults, IsEmpty()) << "there is nothing that was tried once more";
    EXPECT_EQ(cell.key.model, "model of a");
    EXPECT_EQ(cell.spec_hash, "spec-hash");
    EXPECT_EQ(runner.check(spec_, submission("b")).build.verdict, Verdict::ok);
  }
}

TEST_F(CellTest, AnExceptionOfTheCompilerToo) {
  world_.compile = [](const BuildRequest&) -> BuildResult { throw std::bad_alloc(); };
  CellRunner runner = this->runner(world_.world());
  EXPECT_EQ(runner.check(spec_, submission("a")).build.verdict, Verdict::harness_error);
}

TEST_F(CellTest, AFaultThatCanPassIsTriedAgainOnceAndKeptWithTheCell) {
  int tries = 0;
  CellRunner runner = this->runner(with_fault("a", [&] {
    if (tries++ == 0) throw TransientFault("cannot fork: too many processes");
  }));
  const CellResult cell = runner.check(spec_, submission("a"));
  EXPECT_EQ(cell.build.verdict, Verdict::ok);
  EXPECT_EQ(cell.cases.size(), 2u);
  EXPECT_EQ(tries, 2);
  EXPECT_THAT(cell.faults, ElementsAre("cannot fork: too many processes"));
}

TEST_F(CellTest, AFaultThatDoesNotPassEndsTheCellAndBothAreTold) {
  int tries = 0;
  CellRunner runner = this->runner(
      with_fault("a", [&] { throw TransientFault(++tries == 1 ? "the first" : "the second"); }));
  const CellResult cell = runner.check(spec_, submission("a"));
  EXPECT_EQ(cell.build.verdict, Verdict::harness_error);
  EXPECT_EQ(cell.build.log, "the second");
  EXPECT_THAT(cell.faults, ElementsAre("the first"));
  EXPECT_EQ(tries, 2);
}

TEST_F(CellTest, WhatWouldComeAgainIsNotTriedAgain) {
  const std::function<void()> kFaults[] = {[] { throw std::bad_alloc(); },
                                           [] { throw std::logic_error("handle"); },
                                           [] { throw Error("libraries do not load"); },
                                           [] { std::ignore = nlohmann::json::parse("{"); }};
  for (const auto& fault : kFaults) {
    int tries = 0;
    CellRunner runner = this->runner(with_fault("a", [&] {
      if (++tries == 1) fault();
    }));
    EXPECT_EQ(runner.check(spec_, submission("a")).build.verdict, Verdict::harness_error);
    EXPECT_EQ(tries, 1);
  }
}

// The cell is created by the step that is tried again.
TEST_F(CellTest, AFaultOfTheCompilerIsKeptToo) {
  int tries = 0;
  cases::World world = world_.world();
  world.compile = [&, compile = world.compile](const BuildRequest& request) {
    if (tries++ == 0) throw TransientFault("no pipe");
    return compile(request);
  };
  CellRunner runner = this->runner(world);
  const CellResult cell = runner.check(spec_, submission("a"));
  EXPECT_EQ(cell.build.verdict, Verdict::ok);
  EXPECT_THAT(cell.faults, ElementsAre("no pipe"));
}

TEST_F(CellTest, OwnTestsThatMeetAFaultEndTheCell) {
  cases::World world = world_.world();
  world.compile = [compile = world.compile](const BuildRequest& request) {
    if (request.sources.front().contents == "the tests") throw std::bad_alloc();
    return compile(request);
  };
  CellRunner runner = this->runner(world);
  Submission s = submission("a");
  s.test_source = "the tests";
  CellResult cell = runner.check(spec_, s);
  runner.run_own_tests(spec_, s, cell, 1);
  EXPECT_EQ(cell.build.verdict, Verdict::harness_error);
  EXPECT_EQ(cell.build.log, "out of memory");
}

// --- timing
// -----------------------------------------------------------------------------------------

class TimedCellTest : public CellTest {
 protected:
  std::vector<CellResult> timed(const cases::World& world, const std::vector<std::string>& names) {
    CellRunner runner = this->runner(world);
    std::vector<CellResult> cells;
    for (const std::string& name : names) cells.push_back(runner.check(spec_, submission(name)));
    runner.time_together(spec_, cells);
    return cells;
  }
};

TEST_F(TimedCellTest, AnswersAreTimedInCommonRounds) {
  const auto cells = timed(world_.world(), {"a", "b"});
  for (const CellResult& cell : cells) {
    ASSERT_NE(find_case(cell, "time"), nullptr);
    EXPECT_EQ(find_case(cell, "time")->samples.size(), 11u);
  }
  EXPECT_EQ(world_.count("start naive"), 1);
}

TEST_F(TimedCellTest, ExamplesOfTheSameCasesShareTheRoundsOfNaiveAndPar) {
  CellRunner runner = this->runner(world_.world());
  std::vector<CellResult> cells;
  for (const char* name : {"a", "b"}) cells.push_back(runner.check(spec_, submission(name)));
  runner.time_examples(spec_, cells, {.quick = true, .named = {"time"}});
  for (const CellResult& cell : cells) ASSERT_NE(find_case(cell, "time"), nullptr);
  EXPECT_EQ(world_.count("start naive"), 1);
  EXPECT_EQ(world_.count("start par"), 1);
}

// The first worker, which checks the answer, can be made; the one that times it cannot.
TEST_F(TimedCellTest, AFaultThatComesWithOneEndsOnlyIt) {
  int made = 0;
  const auto cells = timed(with_fault("a",
                                      [&] {
                                        if (++made > 1) throw std::bad_alloc();
                                      }),
                           {"a", "b"});
  EXPECT_EQ(cells[0].build.verdict, Verdict::harness_error);
  EXPECT_EQ(cells[1].build.verdict, Verdict::ok);
  EXPECT_EQ(find_case(cells[1], "time")->samples.size(), 11u);
}

TEST_F(TimedCellTest, WhyTheyWereTimedAloneIsKeptWithEach) {
  int made = 0;
  const auto cells = timed(with_fault("a",
                                      [&] {
                                        if (++made == 2) throw std::bad_alloc();
                                      }),
                           {"a", "b"});
  for (const CellResult& cell : cells) {
    EXPECT_EQ(cell.build.verdict, Verdict::ok);
    EXPECT_THAT(cell.faults, ElementsAre("while timed with others: out of memory"));
    EXPECT_EQ(std::ranges::count(cell.cases, "time", &CaseResult::name), 1);
  }
}

TEST_F(TimedCellTest, AFaultThatPassesWhileTimedAloneIsKept) {
  int made = 0;
  const auto cells = timed(with_fault("a",
                                      [&] {
                                        if (++made == 2) throw TransientFault("cannot fork");
                                      }),
                           {"a"});
  EXPECT_EQ(cells[0].build.verdict, Verdict::ok);
  EXPECT_EQ(find_case(cells[0], "time")->samples.size(), 11u);
  EXPECT_THAT(cells[0].faults, ElementsAre("cannot fork"));
}

TEST_F(TimedCellTest, WhatDoesNotLoadIsNotAttempted) {
  world_.libraries["a"].load.verdict = Verdict::load_error;
  const auto cells = timed(world_.world(), {"a"});
  EXPECT_EQ(find_case(cells[0], "time")->verdict, Verdict::load_error);
  EXPECT_THAT(find_case(cells[0], "time")->detail, HasSubstr("not attempted"));
  EXPECT_EQ(world_.count("start par"), 0);
}

TEST_F(TimedCellTest, WhatKeepsRunningIntoTimeLimitsIsNotAttempted) {
  spec_.cases = {case_spec("one"), case_spec("two"), case_spec("three"),
                 case_spec("time", CaseGroup::timed)};
  world_.libraries["a"].run = [](const auto&, int) { return ending(Verdict::time_limit, 5); };
  const auto cells = timed(world_.world(), {"a"});
  EXPECT_EQ(find_case(cells[0], "time")->verdict, Verdict::time_limit);
  EXPECT_EQ(world_.count("run a time"), 0);
}

TEST_F(TimedCellTest, ABaselineThatDoesNotCompileIsTheHarnesssFault) {
  world_.compile = [](const BuildRequest& request) {
    BuildResult result;
    result.library = request.sources.at(0).contents;
    if (result.library == "par") result.record.verdict = Verdict::build_error;
    return result;
  };
  const auto cells = timed(world_.world(), {"a"});
  EXPECT_EQ(cells[0].build.verdict, Verdict::harness_error);
  EXPECT_THAT(cells[0].build.log, HasSubstr("par.cpp does not compile"));
}

// --- exclusive cases
// --------------------------------------------------------------------------------

class ExclusiveTest : public CellTest {
 protected:
  ExclusiveTest() {
    CaseSpec train = case_spec("train");
    train.exclusive = true;
    train.params = {{"seconds", 10.0}};
    train.pace = {"time", 100};
    train.time_limit_s = 20;
    spec_.cases.push_back(train);
    world_.libraries["par"].run = [](const auto&, int) { return testing::taking(0.02); };
  }
  CellResult run() {
    CellRunner runner = this->runner(world_.world());
    CellResult cell = runner.check(spec_, submission("a"));
    EXPECT_EQ(find_case(cell, "train"), nullptr) << "it runs alone";
    runner.run_exclusive(spec_, cell);
    return cell;
  }
};

TEST_F(ExclusiveTest, ParSetsTheBudget) {
  const CellResult cell = run();
  const CaseResult* train = find_case(cell, "train");
  ASSERT_NE(train, nullptr);
  EXPECT_EQ(*find_metric(train->metrics, "budget_s"), 2);  // 100 times 0.02 s
  EXPECT_EQ(world_.count("run a train"), 1);
}

TEST_F(ExclusiveTest, TheBudgetIsAtMostTheSpecs) {
  world_.libraries["par"].run = [](const auto&, int) { return testing::taking(1); };
  EXPECT_EQ(*find_metric(find_case(run(), "train")->metrics, "budget_s"), 10);
}

// An answer that is fast in the timed case does not get the time it saves there for the case that
// takes its pace from it; a slow answer gets no more than par's pace allows.
TEST_F(ExclusiveTest, TheBudgetIsAQuarterOfParsAtTheAnswersOwnPace) {
  const std::vector<std::pair<double, double>> expected{{0.02, 0.5}, {0.04, 1.0}, {0.2, 2.0}};
  for (const auto& [own_seconds, budget] : expected) {
    world_.libraries["a"].run = [s = own_seconds](const std::string&, int) {
      return testing::taking(s);
    };
    CellRunner runner = this->runner(world_.world());
    CellResult cell = runner.check(spec_, submission("a"));
    runner.time_together(spec_, std::span(&cell, 1));
    runner.run_exclusive(spec_, cell);
    EXPECT_NEAR(*find_metric(find_case(cell, "train")->metrics, "budget_s"), budget, 0.01);
  }
}

TEST_F(ExclusiveTest, AFailureIsTold) {
  world_.libraries["a"].run = [](const std::string& name, int) {
    return name == "train" ? testing::wrong() : testing::Answer();
  };
  const CellResult cell = run();
  EXPECT_EQ(find_case(cell, "train")->verdict, Verdict::wrong_answer);
  EXPECT_EQ(world_.count("run a train"), 1);
}

// --- simulated
// --------------------------------------------------------------------------------------

TEST_F(CellTest, ACellInCudaIsSimulatedWholeAndNeverTimed) {
  world_.libraries["a"].run = [](const auto&, int) {
    testing::Answer answer;
    answer.outcome.device.emplace();
    return answer;
  };
  CellRunner runner = this->runner(world_.world());
  std::vector<CellResult> cells{runner.check(spec_, submission("a", Language::cuda))};
  EXPECT_EQ(cells[0].key.device, Device::sim);
  EXPECT_EQ(cells[0].cases.size(), 3u);
  EXPECT_THAT(cells[0].cases, Each(Field(&CaseResult::verdict, Verdict::ok)));
  const auto runs = world_.entries("run ").size();
  runner.time_together(spec_, cells);
  EXPECT_EQ(world_.entries("run ").size(), runs);
}

// --- on a real GPU
// --------------------------------------------------------------------------------------

class RealGpuCellTest : public CellTest {
 protected:
  RealGpuCellTest() {
    fs::create_directories(folder_ / "challenges");
    fs::create_directories(folder_ / "kernels");
    const fs::path challenge = folder_ / "challenges" / spec_.name;
    spec_.directory = challenge;
    fs::create_directories(challenge / "baselines");
    for (const char* file : {"baselines/naive.cu", "abi.h"})
      write_file_atomically(challenge / file, fs::path(file).filename().string());
    write_file_atomically(folder_ / "kernels" / (spec_.name + ".cu"), "par.cu");
    world_.compile = [this](const BuildRequest& request) {
      (request.machine_code ? with_machine_code_ : without_).push_back(request.sources[0].contents);
      BuildResult result;
      result.library = request.sources[0].contents;
      return result;
    };
    for (const char* library : {"a", "naive.cu", "par.cu"}) takes(library, 1);
  }
  // `seconds` of GPU time; the host is busy for one second.
  void takes(const std::string& library, double seconds) {
    world_.libraries[library].run = [seconds](const auto&, int) {
      testing::Answer answer;
      answer.outcome.seconds = 1;
      answer.outcome.device.emplace();
      answer.outcome.device->seconds = seconds;
      answer.outcome.device->work.counters.launches = 3;
      return answer;
    };
  }
  CellResult measured() {
    cases::World world = world_.world();
    world.make_worker = [this, usual = world.make_worker](
                            const processes::WorkerSettings& settings, processes::Arena& input,
                            std::size_t bytes, processes::Arena* device) {
      drivers_.push_back(settings.device && settings.device->gpu ? settings.device->gpu->driver
                                                                 : "none");
      return usual(settings, input, bytes, device);
    };
    CellRunner runner(
        world, {.tier = {}, .seed = 7, .filter = {}, .gpu = processes::RealGpu{"the driver"}});
    Submission answer = submission("a", Language::cuda);
    answer.on_real_gpu = true;
    CellResult cell = runner.check(spec_, answer);
    runner.time_together(spec_, std::span(&cell, 1));
    runner.run_exclusive(spec_, cell);
    return cell;
  }

  std::vector<std::string> with_machine_code_, without_, drivers_;
};

TEST_F(RealGpuCellTest, ItIsCheckedAndTimedThere) {
  takes("a", 0.5);
  takes("naive.cu", 4);
  const CellResult cell = measured();
  EXPECT_EQ(cell.key.device, Device::cuda);
  EXPECT_EQ(cell.build.verdict, Verdict::ok) << cell.build.log;
  ASSERT_EQ(cell.cases.size(), 3u);
  EXPECT_THAT(cell.cases, Each(Field(&CaseResult::verdict, Verdict::ok)));
  EXPECT_THAT(drivers_, Each("the driver"));
  EXPECT_THAT(with_machine_code_, ElementsAre("a", "naive.cu", "par.cu"));
  EXPECT_THAT(without_, IsEmpty());
  const CaseResult& timed = *find_case(cell, "time");
  ASSERT_FALSE(timed.samples.empty());
  EXPECT_EQ(timed.samples[0].submission, 0.5) << "the GPU's time, not the host's";
  EXPECT_EQ(timed.samples[0].par, 1);
  EXPECT_EQ(timed.samples[0].naive, 4);
  EXPECT_EQ(*find_metric(timed.metrics, "naive_sim_launches"), 3) << "what the host may know";
  EXPECT_EQ(world_.flushes, 0) << "a GPU's caches are its own";
}

TEST_F(RealGpuCellTest, WhatCannotRunThereIsLeftOut) {
  spec_.cases[1].on_simulator = false;
  spec_.cases.push_back(case_spec("train", CaseGroup::resource));
  spec_.cases.back().exclusive = true;
  spec_.cases.back().on_simulator = false;
  const CellResult cell = measured();
  EXPECT_THAT(cell.cases,
              ElementsAre(Field(&CaseResult::name, "one"), Field(&CaseResult::name, "time")));
}

TEST_F(CellTest, OwnTestsAreNotedWhereThereAreNone) {
  CellRunner runner = this->runner(world_.world());
  const auto kind = [&](const Submission& s, CellRunner& by) {
    CellResult cell;
    by.run_own_tests(spec_, s, cell, 1);
    return cell.tests_note.value_or(Note()).kind;
  };
  EXPECT_EQ(kind(submission("a"), runner), Note::Kind::no_tests);
  Submission in_cuda = submission("a", Language::cuda);
  in_cuda.test_source = "the tests";
  EXPECT_EQ(kind(in_cuda, runner), Note::Kind::tests_not_run) << "nothing is wrong there";
  Submission tested = submission("a");
  tested.test_source = "the tests";
  CellRunner quick = this->runner(world_.world(), {.quick = true});
  EXPECT_EQ(kind(tested, quick), Note::Kind::tests_not_run);
}

}  // namespace
}  // namespace assay::cells
