#include "cases/correctness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "assay/error.h"
#include "assay/secret.h"
#include "cases/fake_world.h"

namespace assay::cases {
namespace {

using ::testing::AllOf;
using testing::Answer;
using testing::case_spec;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::ending;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::wrong;

class CorrectnessTest : public ::testing::Test {
 protected:
  std::vector<CaseResult> checked(const CaseFilter& filter = {}, std::uint64_t seed = 7) {
    const World world = world_.world();
    TimeAccount account;
    return run_correctness({world, world_.challenge, settings(), seed, account}, filter);
  }
  std::vector<CaseResult> simulated() {
    const World world = world_.world();
    TimeAccount account;
    processes::WorkerSettings on_device = settings();
    on_device.device.emplace();
    return run_simulated({world, world_.challenge, on_device, 7, account}, {});
  }
  // The answer to each named case; all other cases are right.
  void script(std::map<std::string, Answer> answers) {
    world_.libraries["a"].run = [answers](const std::string& name, int) {
      const auto found = answers.find(name);
      return found == answers.end() ? Answer() : found->second;
    };
  }
  const CaseResult& result_of(const std::vector<CaseResult>& results, const std::string& name) {
    return *std::ranges::find(results, name, &CaseResult::name);
  }

  testing::FakeWorld world_;
  ChallengeSpec spec_ =
      testing::spec_with({case_spec("one"), case_spec("two"), case_spec("three"), case_spec("four"),
                          case_spec("five"), case_spec("time", CaseGroup::timed)});

 private:
  processes::WorkerSettings settings() const {
    processes::WorkerSettings settings;
    settings.spec = &spec_;
    settings.library = "a";
    return settings;
  }
};

std::vector<std::string> names(const std::vector<CaseResult>& results) {
  std::vector<std::string> names;
  for (const CaseResult& r : results) names.push_back(r.name);
  return names;
}

TEST_F(CorrectnessTest, EveryUntimedCaseGetsAResultInTheOrderOfTheSpec) {
  const auto results = checked();
  EXPECT_THAT(names(results), ElementsAre("one", "two", "three", "four", "five"));
  EXPECT_THAT(results, Each(Field(&CaseResult::verdict, Verdict::ok)));
  EXPECT_EQ(results[0].shape, "shape of one");
  EXPECT_EQ(results[0].seconds, 0.001);
  EXPECT_EQ(results[0].accuracy, 2);
  EXPECT_EQ(results[0].seed, case_seed(7, "copying", "one"));
  EXPECT_EQ(world_.count("start a"), 1) << "one worker runs them all";
}

TEST_F(CorrectnessTest, TheOrderOfRunningIsShuffledByTheSeed) {
  checked({}, 1);
  const auto first = world_.entries("run ");
  bool differs = false;
  for (std::uint64_t seed = 2; seed < 6; ++seed) {
    world_.log.clear();
    checked({}, seed);
    differs = differs || world_.entries("run ") != first;
  }
  EXPECT_TRUE(differs);
  world_.log.clear();
  checked({}, 1);
  EXPECT_EQ(world_.entries("run "), first);
}

TEST_F(CorrectnessTest, TheCasesAfterAFailureAreSkippedOnDemandInTheSpecsOrder) {
  script({{"two", wrong()}, {"four", wrong()}});
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    world_.log.clear();
    const auto results = checked({.stop_at_failure = true}, seed);
    EXPECT_EQ(names(results).size(), 5u) << "each has a result";
    EXPECT_EQ(result_of(results, "two").verdict, Verdict::wrong_answer);
    EXPECT_EQ(std::ranges::count(results, Verdict::skipped, &CaseResult::verdict), 3);
    EXPECT_EQ(world_.entries("run "), (std::vector<std::string>{"run a one", "run a two"}));
  }
}

TEST_F(CorrectnessTest, AWorkerThatDiesCostsOnlyItsCaseAndIsReplaced) {
  script({{"two", ending(Verdict::runtime_error)}, {"four", ending(Verdict::output_limit)}});
  const auto results = checked();
  EXPECT_EQ(result_of(results, "two").verdict, Verdict::runtime_error);
  EXPECT_EQ(result_of(results, "two").detail, "scripted");
  EXPECT_EQ(result_of(results, "four").verdict, Verdict::output_limit);
  EXPECT_EQ(std::ranges::count(results, Verdict::ok, &CaseResult::verdict), 3);
  EXPECT_LE(world_.count("start a"), 3);
  EXPECT_GE(world_.count("start a"), 2);
  EXPECT_EQ(world_.count("start a"), world_.count("end a"));
}

TEST_F(CorrectnessTest, AWrongAnswerKeepsItsWorker) {
  script({{"two", wrong()}});
  const auto results = checked();
  EXPECT_EQ(result_of(results, "two").verdict, Verdict::wrong_answer);
  EXPECT_EQ(result_of(results, "two").detail, "not a copy");
  EXPECT_EQ(world_.count("start a"), 1);
}

TEST_F(CorrectnessTest, ThreeLostDevicesEndTheAttempts) {
  world_.libraries["a"].run = [](const auto&, int) { return ending(Verdict::runtime_error, 5); };
  world_.libraries["a"].loses_device = true;
  const auto results = checked();
  EXPECT_EQ(world_.entries("run ").size(), static_cast<std::size_t>(kMostTimeouts));
  EXPECT_THAT(results, Each(Field(&CaseResult::verdict, Verdict::runtime_error)));
}

TEST_F(CorrectnessTest, ThreeTimeLimitsEndTheAttempts) {
  world_.libraries["a"].run = [](const auto&, int) { return ending(Verdict::time_limit, 5); };
  const auto results = checked();
  EXPECT_EQ(world_.entries("run ").size(), static_cast<std::size_t>(kMostTimeouts));
  EXPECT_THAT(results, Each(Field(&CaseResult::verdict, Verdict::time_limit)));
  EXPECT_EQ(std::ranges::count_if(
                results, [](const CaseResult& r) { return r.detail.starts_with("not attempted"); }),
            5 - kMostTimeouts);
}

TEST_F(CorrectnessTest, TwoTimeLimitsDoNot) {
  script({{"two", ending(Verdict::time_limit)}, {"four", ending(Verdict::idle_limit)}});
  EXPECT_EQ(std::ranges::count(checked(), Verdict::ok, &CaseResult::verdict), 3);
}

TEST_F(CorrectnessTest, AResourceCaseHasAFreshWorker) {
  spec_.cases = {case_spec("one"), case_spec("memory", CaseGroup::resource), case_spec("two")};
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    world_.log.clear();
    checked({}, seed);
    const auto run = std::ranges::find(world_.log, "run a memory");
    ASSERT_NE(run, world_.log.end());
    EXPECT_EQ(*(run - 1), "load a");
  }
}

TEST_F(CorrectnessTest, ADeterministicCaseRunsTwiceAndMustAgree) {
  spec_.cases = {case_spec("one")};
  spec_.cases[0].deterministic = true;
  EXPECT_EQ(checked()[0].verdict, Verdict::ok);
  EXPECT_EQ(world_.count("run a one"), 2);
}

TEST_F(CorrectnessTest, TheRunsOfADeterministicCaseHaveAFreshWorkerEach) {
  spec_.cases = {case_spec("one"), case_spec("two"), case_spec("three")};
  spec_.cases[0].deterministic = true;
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    world_.log.clear();
    checked({}, seed);
    for (auto run = world_.log.begin(); run != world_.log.end(); ++run) {
      if (*run != "run a one") continue;
      EXPECT_EQ(*(*(run - 1) == "shuffle a" ? run - 2 : run - 1), "load a");
    }
  }
}

TEST_F(CorrectnessTest, NoOtherCaseRunsInAWorkerThatMeasures) {
  spec_.cases = {case_spec("one"), case_spec("memory", CaseGroup::resource), case_spec("two"),
                 case_spec("again"), case_spec("three")};
  spec_.cases[3].deterministic = true;
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    world_.log.clear();
    checked({}, seed);
    bool measured = false;
    for (const std::string& entry : world_.log) {
      if (entry == "load a") measured = false;
      if (!entry.starts_with("run a ")) continue;
      EXPECT_FALSE(measured) << entry;
      measured = entry == "run a memory" || entry == "run a again";
    }
  }
}

TEST_F(CorrectnessTest, TheRunsOfADeterministicCaseSeeTheSameInputElsewhere) {
  class Noting final : public testing::Copying {
   public:
    void fill(const CaseSpec& spec, const CasePlan& plan, const Seeds& seeds,
              BufferViews buffers) const override {
      Copying::fill(spec, plan, seeds, buffers);
      input.push_back(buffers[0].data);
      values.emplace_back(buffers[0].as<float>(), buffers[0].as<float>() + 4);
    }
    mutable std::vector<const void*> input;
    mutable std::vector<std::vector<float>> values;
  } noting;
  spec_.cases = {case_spec("one")};
  spec_.cases[0].deterministic = true;
  const World world = world_.world();
  processes::WorkerSettings settings;
  settings.spec = &spec_;
  settings.library = "a";
  TimeAccount account;
  EXPECT_EQ(run_correctness({world, noting, settings, 7, account}, {})[0].verdict, Verdict::ok);
  ASSERT_EQ(noting.input.size(), 2u);
  EXPECT_NE(noting.input[0], noting.input[1]);
  EXPECT_EQ(noting.values[0], noting.values[1]);
}

// The answer asks for three blocks, and manages without the first. It is wrong to write when
// another is refused.
TEST_F(CorrectnessTest, EachAllocationIsRefusedInARunOfItsOwn) {
  spec_.cases = {case_spec("one")};
  spec_.cases[0].failing_allocation = kEachAllocation;
  std::vector<std::uint32_t> refused;
  std::uint32_t writes_at = 0;
  world_.libraries["a"].run_drawn = [&](const CaseSpec& c) {
    refused.push_back(c.failing_allocation);
    Answer answer{.outcome = {.seconds = 0.001, .allocations = 3}};
    if (c.failing_allocation < 2) return answer;
    answer.outcome.status = ASSAY_ENOMEM;
    answer.writes = c.failing_allocation == writes_at;
    return answer;
  };
  EXPECT_EQ(checked()[0].verdict, Verdict::ok);
  EXPECT_THAT(refused, ElementsAre(0, 1, 2, 3));
  for (writes_at = 2; writes_at <= 3; ++writes_at) {
    const CaseResult result = checked()[0];
    EXPECT_EQ(result.verdict, Verdict::wrong_answer);
    EXPECT_THAT(result.detail,
                HasSubstr(fmt::format("allocation {} was refused, and y was changed", writes_at)));
  }
}

TEST_F(CorrectnessTest, OfVeryManyAllocationsTheFirstAndTheLastAreRefused) {
  spec_.cases = {case_spec("one")};
  spec_.cases[0].failing_allocation = kEachAllocation;
  std::vector<std::uint32_t> refused;
  world_.libraries["a"].run_drawn = [&](const CaseSpec& c) {
    refused.push_back(c.failing_allocation);
    return Answer{.outcome = {.seconds = 0.001, .allocations = 1000}};
  };
  EXPECT_EQ(checked()[0].verdict, Verdict::ok);
  ASSERT_EQ(refused.size(), 65u);
  EXPECT_EQ(refused[63], 63u);
  EXPECT_EQ(refused[64], 1000u);
}

TEST_F(CorrectnessTest, WhatARefusedCallKeptIsGoneBeforeTheNext) {
  spec_.cases = {case_spec("one")};
  spec_.cases[0].failing_allocation = kEachAllocation;
  std::int64_t kept = 0;
  world_.libraries["a"].run_drawn = [&](const CaseSpec&) {
    return Answer{.outcome = {.seconds = 0.001, .allocations = 2, .kept_blocks = kept}};
  };
  EXPECT_EQ(checked()[0].verdict, Verdict::ok);
  EXPECT_EQ(world_.count("load a"), 1);
  kept = 1;
  EXPECT_EQ(checked()[0].verdict, Verdict::ok);
  EXPECT_EQ(world_.count("load a"), 4) << "one more for each run after the first";
}

TEST_F(CorrectnessTest, WhatAsksForNoMemoryIsRefusedNone) {
  spec_.cases = {case_spec("one")};
  spec_.cases[0].failing_allocation = kEachAllocation;
  EXPECT_EQ(checked()[0].verdict, Verdict::ok);
  EXPECT_EQ(world_.count("run a one"), 1);
}

// Anyone who knows what a seed was derived from can make it again. It cannot be computed from
// neighbouring seeds.
TEST_F(CorrectnessTest, SeedsAreDerivedOneWay) {
  const std::uint64_t one = case_seed(7, "copying", "one");
  EXPECT_EQ(one, derive(7, "case copying/one"));
  EXPECT_EQ(repetition_seed(one, 3), derive(one, "repetition", 3));
  EXPECT_NE(one, case_seed(7, "copying", "two"));
  EXPECT_NE(one, case_seed(8, "copying", "one"));
}

// The challenge accepts both: it looks only at the first float.
TEST_F(CorrectnessTest, ADeterministicCaseThatDiffersInABitIsWrong) {
  class Lenient final : public testing::Copying {
    CheckResult check(const CaseSpec&, const CasePlan&, const Reference&, BufferViews,
                      const CallbackServer*) const override {
      return {};
    }
  } lenient;
  spec_.cases = {case_spec("one")};
  spec_.cases[0].deterministic = true;
  world_.libraries["a"].run = [](const auto&, int nth) { return nth == 1 ? wrong() : Answer(); };
  const World world = world_.world();
  processes::WorkerSettings settings;
  settings.spec = &spec_;
  settings.library = "a";
  TimeAccount account;
  const auto results = run_correctness({world, lenient, settings, 7, account}, {});
  EXPECT_EQ(results[0].verdict, Verdict::wrong_answer);
  EXPECT_THAT(results[0].detail, HasSubstr("differ in some bit"));
}

TEST_F(CorrectnessTest, ALoadErrorReachesEveryCaseAndIsNotTriedAgain) {
  world_.libraries["a"].load = {.verdict = Verdict::load_error, .detail = "no symbol"};
  const auto results = checked();
  EXPECT_THAT(results, Each(AllOf(Field(&CaseResult::verdict, Verdict::load_error),
                                  Field(&CaseResult::detail, "no symbol"))));
  EXPECT_EQ(world_.count("load a"), 1);
  EXPECT_THAT(world_.entries("run "), IsEmpty());
}

TEST_F(CorrectnessTest, AHeapBeyondTheLimitFailsAResourceCaseOnly) {
  spec_.limits.heap_bytes = 100;
  spec_.cases = {case_spec("one"), case_spec("memory", CaseGroup::resource)};
  world_.libraries["a"].run = [](const auto&, int) { return Answer{.grown_bytes = 101}; };
  const auto results = checked();
  EXPECT_EQ(results[0].verdict, Verdict::ok);
  EXPECT_EQ(results[1].verdict, Verdict::wrong_answer);
  EXPECT_THAT(results[1].detail, HasSubstr("may come from elsewhere"));
  world_.libraries["a"].run = [](const auto&, int) { return Answer{.grown_bytes = 100}; };
  EXPECT_EQ(checked()[1].verdict, Verdict::ok);
}

TEST_F(CorrectnessTest, AFilterChooses) {
  spec_.cases[1].quick = spec_.cases[3].exclusive = true;
  EXPECT_THAT(names(checked({.quick = true})), ElementsAre("two"));
  EXPECT_THAT(names(checked({.only = "three"})), ElementsAre("three"));
  EXPECT_THAT(names(checked({.exclusive = true})), ElementsAre("four"));
  EXPECT_THAT(names(checked({.named = {"five", "time"}})), ElementsAre("five"));
  EXPECT_THAT(checked({.only = "time"}), IsEmpty());
}

TEST_F(CorrectnessTest, WhatCannotBeStartedIsTheHarnesssFault) {
  const World usual = world_.world();
  World broken = usual;
  broken.make_worker = [](const processes::WorkerSettings&, processes::Arena&, std::size_t,
                          processes::Arena*) -> std::unique_ptr<processes::Worker> {
    throw Error("no process");
  };
  processes::WorkerSettings settings;
  settings.spec = &spec_;
  TimeAccount account;
  EXPECT_THROW(run_correctness({broken, world_.challenge, settings, 7, account}, {}), Error);
}

// --- on the simulated device
// ------------------------------------------------------------------------

processes::DeviceReport report(const std::function<void(processes::DeviceReport&)>& change) {
  processes::DeviceReport r;
  change(r);
  return r;
}

class SimulatedTest : public CorrectnessTest {
 protected:
  SimulatedTest() {
    device("", [](processes::DeviceReport&) {});
  }
  // Changes the device's report in that case.
  void device(const std::string& in_case, std::function<void(processes::DeviceReport&)> change) {
    world_.libraries["a"].run = [in_case, change](const std::string& name, int) {
      Answer answer;
      answer.outcome.device = report(name == in_case ? change : [](processes::DeviceReport&) {});
      return answer;
    };
  }
};

TEST_F(SimulatedTest, TimedCasesRunLikeOthersOnAFreshDevice) {
  device("time", [](processes::DeviceReport& r) { r.work.counters.launches = 3; });
  const auto results = simulated();
  EXPECT_THAT(names(results), ElementsAre("one", "two", "three", "four", "five", "time"));
  EXPECT_THAT(results, Each(Field(&CaseResult::verdict, Verdict::ok)));
  EXPECT_EQ(simulated_work(results[5].metrics)->counters.launches, 3u);
  EXPECT_EQ(world_.count("run a time"), 1);
  const auto run = std::ranges::find(world_.log, "run a time");
  EXPECT_EQ(*(run - 1), "load a");
}

// Only a real GPU measures its time.
TEST_F(SimulatedTest, TimeOnAGpuCountsAgainstTheLimit) {
  device("two", [](processes::DeviceReport& r) { r.seconds = 5.5; });
  const CaseResult result = result_of(simulated(), "two");
  EXPECT_EQ(result.verdict, Verdict::time_limit);
  EXPECT_THAT(result.detail, HasSubstr("took 5.5 s on the GPU, more than the limit of 5 s"));
}

TEST_F(SimulatedTest, WhatNeedsAGpuEndsAllWhereNothingFailed) {
  device("two", [](processes::DeviceReport& r) { r.unsupported = "stacksave.u64"; });
  const auto results = simulated();
  EXPECT_THAT(results, Each(AllOf(Field(&CaseResult::verdict, Verdict::needs_gpu),
                                  Field(&CaseResult::detail, HasSubstr("stacksave.u64")))));
  EXPECT_EQ(results.size(), 6u);
}

TEST_F(SimulatedTest, WhatNeedsAGpuCostsOnlyItselfWhereKernelsRan) {
  device("two", [](processes::DeviceReport& r) { r.unsupported = "stacksave.u64"; });
  const auto gpu = world_.libraries["a"].run;
  world_.libraries["a"].run = [gpu](const std::string& name, int nth) {
    auto result = gpu(name, nth);
    if (name == "three") result.outcome.device->work.counters.launches = 1;
    return result;
  };
  const auto results = simulated();
  ASSERT_EQ(results.size(), 6u);
  for (const CaseResult& r : results) {
    EXPECT_EQ(r.verdict, r.name == "two" ? Verdict::needs_gpu : Verdict::ok) << r.name;
  }
}

TEST_F(SimulatedTest, WhatNeedsAGpuHidesNoFailure) {
  device("two", [](processes::DeviceReport& r) { r.unsupported = "stacksave.u64"; });
  const auto gpu = world_.libraries["a"].run;
  world_.libraries["a"].run = [gpu](const std::string& name, int nth) {
    return name == "four" ? testing::wrong() : gpu(name, nth);
  };
  const auto results = simulated();
  ASSERT_EQ(results.size(), 6u);
  for (const CaseResult& r : results) {
    EXPECT_EQ(r.verdict, r.name == "two"    ? Verdict::needs_gpu
                         : r.name == "four" ? Verdict::wrong_answer
                                            : Verdict::ok)
        << r.name;
  }
}

TEST_F(SimulatedTest, WhatNeedsAGpuToLoadRunsNothing) {
  world_.libraries["a"].load = {.verdict = Verdict::needs_gpu, .detail = "needs a GPU (x)"};
  const auto results = simulated();
  EXPECT_EQ(results.size(), 6u);
  EXPECT_THAT(results, Each(Field(&CaseResult::verdict, Verdict::needs_gpu)));
  EXPECT_THAT(world_.entries("run "), IsEmpty());
}

TEST_F(SimulatedTest, AnErrorOnTheDeviceStaysWithItsWorker) {
  device("two", [](processes::DeviceReport& r) {
    r.findings = 2;
    r.first_finding = "a race";
  });
  const auto results = simulated();
  EXPECT_EQ(result_of(results, "two").verdict, Verdict::device_error);
  EXPECT_EQ(result_of(results, "two").detail, "a race (and findings at 1 more places)");
  const auto run = std::ranges::find(world_.log, "run a two");
  EXPECT_EQ(*(run + 1), "collect a");
  EXPECT_EQ(*(run + 2), "end a");
  EXPECT_EQ(std::ranges::count(results, Verdict::ok, &CaseResult::verdict), 5);
}

TEST_F(SimulatedTest, TheSecondRunOfADeterministicCaseIsShuffled) {
  spec_.cases = {case_spec("one")};
  spec_.cases[0].deterministic = true;
  simulated();
  EXPECT_THAT(world_.log,
              ElementsAre("start a", "load a", "run a one", "collect a", "end a", "start a",
                          "load a", "shuffle a", "run a one", "collect a", "end a"));
}

// --- cases that are drawn

class DrawnCasesTest : public CorrectnessTest {
 protected:
  DrawnCasesTest() {
    spec_.random.emplace();
    spec_.random->axes = {{.name = "n", .choices = {nlohmann::json{{"from", 0}, {"to", 100'000}}}},
                          {.name = "kind", .choices = {"plain", "ties"}}};
    spec_.cases.clear();
    for (const char* name : {"random_1", "random_2", "random_3"}) {
      CaseSpec c = case_spec(name, CaseGroup::edge);
      c.drawn = true;
      spec_.cases.push_back(c);
    }
    spec_.cases.push_back(case_spec("listed"));
  }
};

TEST_F(DrawnCasesTest, AreDrawnFromTheSeedOfTheRun) {
  std::map<std::uint64_t, std::map<std::string, nlohmann::json>> params;
  for (const std::uint64_t seed : {7, 8}) {
    world_.libraries["a"].run_drawn = [&params, seed](const CaseSpec& c) {
      params[seed][c.name] = c.params;
      return Answer();
    };
    EXPECT_THAT(checked({}, seed), Each(Field(&CaseResult::verdict, Verdict::ok)));
  }
  EXPECT_TRUE(params[7]["random_1"].contains("n"));
  EXPECT_NE(params[7]["random_1"], params[7]["random_2"]);
  EXPECT_NE(params[7]["random_1"], params[8]["random_1"]);
  EXPECT_TRUE(params[7]["listed"].is_null());
}

TEST_F(DrawnCasesTest, OneCanBeReplayedAlone) {
  std::vector<nlohmann::json> seen;
  world_.libraries["a"].run_drawn = [&seen](const CaseSpec& c) {
    if (c.name == "random_2") seen.push_back(c.params);
    return Answer();
  };
  checked();
  checked({.only = "random_2"});
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0], seen[1]);
}

TEST_F(DrawnCasesTest, AFailureTellsOfTheSimplestDrawThatFailsAlike) {
  world_.libraries["a"].run_drawn = [](const CaseSpec& c) {
    return c.name == "random_2" && c.params.at("n") >= 12 ? wrong() : Answer();
  };
  spec_.random->axes[0].choices = {nlohmann::json{{"from", 12}, {"to", 100'000}}};
  const auto results = checked();
  EXPECT_EQ(result_of(results, "random_2").verdict, Verdict::wrong_answer);
  EXPECT_THAT(result_of(results, "random_2").detail,
              AllOf(HasSubstr("not a copy"), HasSubstr(R"({"kind":"plain","n":12})")));
  EXPECT_EQ(result_of(results, "random_1").verdict, Verdict::ok);
  EXPECT_EQ(result_of(results, "random_1").detail, "");
}

// Dying in a different way counts as a different failure.
TEST_F(DrawnCasesTest, ShrinkingKeepsTheVerdict) {
  spec_.random->axes = {{.name = "n", .choices = {1, 2, 3}, .usual = 0}};
  world_.libraries["a"].run_drawn = [](const CaseSpec& c) {
    if (!c.params.is_object()) return Answer();
    const int n = c.params.at("n");
    return n == 1 ? Answer() : n == 2 ? ending(Verdict::runtime_error) : wrong();
  };
  int shrunk = 0;
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    for (const CaseResult& r : checked({}, seed)) {
      if (r.verdict != Verdict::wrong_answer) continue;
      ++shrunk;
      EXPECT_THAT(r.detail, HasSubstr(R"(drawn: {"n":3})"));
    }
  }
  EXPECT_GT(shrunk, 3);
}

TEST_F(DrawnCasesTest, AreNoCasesOfAnExample) {
  const auto results = checked({.named = {"listed"}, .and_correctness = true});
  EXPECT_THAT(names(results), ElementsAre("listed"));
}

}  // namespace
}  // namespace assay::cases
