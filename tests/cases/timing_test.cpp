#include "cases/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/error.h"
#include "cases/fake_world.h"
#include "cases/repetitions.h"
#include "records/lookup.h"

namespace assay::cases {
namespace {

using testing::Answer;
using ::testing::Each;
using testing::ending;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Optional;
using testing::taking;
using testing::wrong;

class TimingTest : public ::testing::Test {
 protected:
  TimingTest() {
    world_.libraries["naive"].run = [](const auto&, int) { return taking(0.010); };
    world_.libraries["par"].run = [](const auto&, int) { return taking(0.002); };
  }

  std::vector<CaseResult> timed(const std::vector<std::filesystem::path>& submissions,
                                bool quick = false) {
    const World world = world_.world();
    processes::WorkerSettings settings;
    settings.spec = &spec_;
    TimeAccount account;
    return run_timed({world, world_.challenge, settings, 7, account}, spec_.cases[0],
                     {"naive", "par"}, submissions, quick);
  }
  CaseResult timed_alone(bool quick = false) { return timed({"a"}, quick).at(0); }
  void script(const std::string& library, std::function<Answer(int nth)> run) {
    world_.libraries[library].run = [run](const auto&, int nth) { return run(nth); };
  }

  testing::FakeWorld world_;
  ChallengeSpec spec_ = testing::spec_with({testing::case_spec("time", CaseGroup::timed)});
};

TEST_F(TimingTest, EveryRepetitionHasParAndTheSubmissionAndTheFirstHaveNaive) {
  const CaseResult result = timed_alone();
  EXPECT_EQ(result.verdict, Verdict::ok);
  EXPECT_EQ(result.name, "time");
  EXPECT_EQ(result.shape, "shape of time");
  ASSERT_EQ(result.samples.size(), 11u);
  EXPECT_THAT(result.samples, Each(Field(&TimingSample::par, Optional(0.002))));
  EXPECT_THAT(result.samples, Each(Field(&TimingSample::submission, Optional(0.001))));
  for (std::size_t i = 0; i < 11; ++i) EXPECT_EQ(result.samples[i].naive.has_value(), i < 3) << i;
  EXPECT_EQ(world_.count("run a time"), 12) << "one call warms up";
}

class GpuTimingTest : public TimingTest {
 protected:
  GpuTimingTest() {
    for (const char* library : {"naive", "par", "a"}) {
      world_.libraries[library].run = [](const auto&, int) {
        Answer answer;
        answer.outcome.device.emplace();
        answer.outcome.device->seconds = 0.001;
        return answer;
      };
    }
  }
  // In each round `r`, from 0, for which `in(r)` is true, the clocks are held down.
  CaseResult timed(const std::function<bool(int)>& in) {
    World world = world_.world();
    int asked = 0;
    world.gpu_state = [&] {
      GpuState state;
      state.sm_mhz = 1980 - asked;
      // Asked once in the warm-up round, then before and after each submission's turn.
      const bool after = asked > 0 && asked % 2 == 0;
      if (after && in(asked / 2 - 1)) ++held_;
      state.violation_ns = {{"power", held_}};
      ++asked;
      return state;
    };
    processes::WorkerSettings settings;
    settings.spec = &spec_;
    settings.device.emplace().gpu = processes::RealGpu{"the driver"};
    TimeAccount account;
    return run_timed({world, world_.challenge, settings, 7, account}, spec_.cases[0],
                     {"naive", "par"}, std::vector<std::filesystem::path>{"a"}, false)
        .at(0);
  }
  std::uint64_t held_ = 0;
};

TEST_F(GpuTimingTest, ThrottledRepetitionsAreLeftOut) {
  const CaseResult result = timed([](int round) { return round == 1 || round == 4; });
  ASSERT_EQ(result.verdict, Verdict::ok) << result.detail;
  for (std::size_t i = 0; i < result.samples.size(); ++i) {
    EXPECT_EQ(result.samples[i].submission.has_value(), i != 1 && i != 4) << i;
    EXPECT_TRUE(result.samples[i].par.has_value()) << i;
  }
  EXPECT_NEAR(*find_metric(result.metrics, kThrottledShare),
              2.0 / static_cast<double>(result.samples.size()), 1e-12);
  EXPECT_EQ(*find_metric(result.metrics, kGpuClockHigh), 1980);
}

TEST_F(GpuTimingTest, WhereAllAreThrottledTheyCountAndTheShareTells) {
  const CaseResult result = timed([](int) { return true; });
  EXPECT_THAT(result.samples, Each(Field(&TimingSample::submission, Optional(0.001))));
  EXPECT_EQ(*find_metric(result.metrics, kThrottledShare), 1);
}

TEST_F(TimingTest, ParIsMeasuredBesideEachAnswer) {
  timed({"a", "b"});
  std::vector<std::string> runs = world_.entries("run ");
  std::erase(runs, "run naive time");
  ASSERT_EQ(runs.size() % 2, 0u);
  bool par_first = false, par_second = false;
  for (std::size_t i = 0; i < runs.size(); i += 2) {
    par_first = par_first || runs[i] == "run par time";
    par_second = par_second || runs[i + 1] == "run par time";
    EXPECT_NE(runs[i] == "run par time", runs[i + 1] == "run par time") << i;
  }
  EXPECT_TRUE(par_first && par_second) << "neither order is favoured";
}

// The first phase is not timed.
class TimedLast final : public testing::Copying {
 public:
  CasePlan plan(const CaseSpec& spec) const override {
    CasePlan plan = testing::Copying::plan(spec);
    plan.phases = 2;
    plan.timed_phase = 1;
    return plan;
  }
};

TEST_F(TimingTest, WhatComesBeforeTheTimedPhaseIsBoundedByWhatParTakes) {
  const auto run = [&](double before) {
    const auto phases = [](double first, double second) {
      return [=](int nth) { return taking(nth % 2 == 0 ? first : second); };
    };
    script("naive", phases(0.001, 0.010));
    script("par", phases(0.1, 0.002));
    script("a", phases(before, 0.001));
    const World world = world_.world();
    processes::WorkerSettings settings;
    settings.spec = &spec_;
    TimeAccount account;
    const std::filesystem::path library = "a";
    return run_timed({world, TimedLast(), settings, 7, account}, spec_.cases[0], {"naive", "par"},
                     std::span(&library, 1), false)
        .at(0);
  };
  EXPECT_EQ(run(2.9).verdict, Verdict::ok);
  const CaseResult result = run(3.1);
  EXPECT_EQ(result.verdict, Verdict::time_limit);
  EXPECT_THAT(result.detail, HasSubstr("before the timed one"));
}

TEST_F(TimingTest, CachesAreColdBeforeEveryTimedCall) {
  timed_alone();
  EXPECT_EQ(world_.flushes, static_cast<int>(world_.entries("run ").size()));
}

TEST_F(TimingTest, AWrongAnswerEndsOnlyItself) {
  script("a", [](int nth) { return nth == 4 ? wrong() : Answer(); });
  const auto results = timed({"a", "b"});
  EXPECT_EQ(results[0].verdict, Verdict::wrong_answer);
  EXPECT_THAT(results[0].detail, HasSubstr("repetition 4: not a copy"));
  EXPECT_EQ(world_.count("run a time"), 5);
  EXPECT_EQ(results[1].verdict, Verdict::ok);
  EXPECT_EQ(results[1].samples.size(), 11u);
}

TEST_F(TimingTest, AnAnswerThatIsWrongInTheWarmUpFailsToo) {
  script("a", [](int nth) { return nth == 0 ? wrong() : Answer(); });
  EXPECT_EQ(timed_alone().verdict, Verdict::wrong_answer);
}

TEST_F(TimingTest, ACrashOrATimeLimitEndsOnlyItself) {
  script("a", [](int nth) { return nth == 2 ? ending(Verdict::runtime_error) : Answer(); });
  script("b", [](int nth) { return nth == 3 ? ending(Verdict::time_limit, 5) : Answer(); });
  const auto results = timed({"a", "b", "c"});
  EXPECT_EQ(results[0].verdict, Verdict::runtime_error);
  EXPECT_EQ(results[1].verdict, Verdict::time_limit);
  EXPECT_EQ(results[2].verdict, Verdict::ok);
  EXPECT_EQ(results[2].samples.size(), 11u);
}

TEST_F(TimingTest, WhatDoesNotLoadIsNotTimed) {
  world_.libraries["a"].load = {.verdict = Verdict::load_error, .detail = "no symbol"};
  const auto results = timed({"a", "b"});
  EXPECT_EQ(results[0].verdict, Verdict::load_error);
  EXPECT_EQ(results[0].detail, "no symbol");
  EXPECT_EQ(world_.count("run a time"), 0);
  EXPECT_EQ(results[1].verdict, Verdict::ok);
}

TEST_F(TimingTest, ExtensionGoesOnWhileUnsteadyAndEndsAtItsMost) {
  script("a", [](int nth) { return taking(nth % 2 == 0 ? 0.001 : 0.002); });
  EXPECT_EQ(timed_alone().samples.size(), 44u);
}

TEST_F(TimingTest, ExtensionEndsOnceTheRatioIsSteady) {
  script("a", [](int nth) { return taking(nth < 12 && nth % 2 == 0 ? 0.002 : 0.001); });
  const std::size_t n = timed_alone().samples.size();
  EXPECT_GT(n, 11u);
  EXPECT_LT(n, 44u);
}

// A round of the extension takes 0.4 s of the virtual clock: the fourth is the last to begin.
TEST_F(TimingTest, ExtensionEndsWhenItsTimeIsSpent) {
  script("par", [](int) { return taking(0.2); });
  script("a", [](int nth) { return taking(nth % 2 == 0 ? 0.15 : 0.25); });
  EXPECT_EQ(timed_alone().samples.size(), 15u);
}

TEST_F(TimingTest, OneThatIsDoneLeavesTheRoundsToTheOthers) {
  script("a", [](int nth) { return taking(nth % 2 == 0 ? 0.001 : 0.002); });
  const auto results = timed({"a", "b"});
  EXPECT_EQ(results[0].samples.size(), 44u);
  EXPECT_EQ(results[1].samples.size(), 11u);
}

TEST_F(TimingTest, ASlowSubmissionIsMeasuredLessOften) {
  script("a", [](int) { return taking(4.5); });
  EXPECT_EQ(timed_alone().samples.size(), 3u);
}

TEST_F(TimingTest, AQuickRunHasThreeRepetitionsAndOneOfNaive) {
  const CaseResult result = timed_alone(true);
  ASSERT_EQ(result.samples.size(), 3u);
  EXPECT_TRUE(result.samples[0].naive);
  EXPECT_FALSE(result.samples[1].naive);
  EXPECT_EQ(world_.count("run naive time"), 2) << "one warms up";
}

TEST_F(TimingTest, WhatARequestCostsIsNoTimeOfACall) {
  world_.libraries["par"].ping_seconds = 0.0005;
  EXPECT_THAT(timed_alone().samples, Each(Field(&TimingSample::submission, Optional(0.0005))));
}

TEST_F(TimingTest, ABaselineThatFailsIsTheHarnesssFault) {
  script("par", [](int nth) { return nth == 5 ? ending(Verdict::runtime_error) : Answer(); });
  EXPECT_THROW(timed_alone(), Error);
  script("par", [](int) { return wrong(); });
  EXPECT_THROW(timed_alone(), Error);
  script("par", [](int) { return Answer(); });
  world_.libraries["naive"].load.verdict = Verdict::load_error;
  EXPECT_THROW(timed_alone(), Error);
}

TEST_F(TimingTest, ASeedGivesTheSameOrderAgain) {
  timed({"a", "b"});
  const auto first = world_.entries("run ");
  world_.log.clear();
  timed({"a", "b"});
  EXPECT_EQ(world_.entries("run "), first);
}

class TimeParTest : public TimingTest {
 protected:
  double pace() {
    const World world = world_.world();
    processes::WorkerSettings settings;
    settings.spec = &spec_;
    settings.library = "par";
    TimeAccount account;
    return time_par({world, world_.challenge, settings, 7, account}, spec_.cases[0]);
  }
};

TEST_F(TimeParTest, IsTheTimeOfOneCall) {
  EXPECT_EQ(pace(), 0.002);
  EXPECT_EQ(world_.count("run par time"), 1);
}

TEST_F(TimeParTest, ThrowsWhenParFails) {
  script("par", [](int) { return wrong(); });
  EXPECT_THROW(pace(), Error);
  world_.libraries["par"].load.verdict = Verdict::load_error;
  EXPECT_THROW(pace(), Error);
}

}  // namespace
}  // namespace assay::cases
