#include "cases/execute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases/fake_world.h"
#include "records/lookup.h"

namespace assay::cases {
namespace {

using testing::Answer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;

// Two phases; the second is timed and has an additional input.
class TwoPhases : public testing::Copying {
 public:
  CasePlan plan(const CaseSpec& spec) const override {
    CasePlan plan = testing::Copying::plan(spec);
    plan.buffers.push_back({"late", Dtype::f32, {1}, Role::input, 1});
    plan.phases = 2;
    plan.timed_phase = 1;
    return plan;
  }
};

// Four floats that are due at the end of the first of two phases.
class DueFirst final : public testing::Copying {
 public:
  CasePlan plan(const CaseSpec& spec) const override {
    CasePlan plan = testing::Copying::plan(spec);
    plan.phases = 2;
    plan.buffers[1].due = 0;
    return plan;
  }
};

class ExecuteTest : public ::testing::Test {
 protected:
  CaseResult executed(const ExecuteOptions& options = {}) { return executed(challenge_, options); }
  CaseResult executed(const Challenge& challenge, const ExecuteOptions& options,
                      Trace* trace = nullptr) {
    const World world = world_.world();
    const PlannedCase planned = plan_case(challenge, spec_);
    processes::Arena arena("input", planned.layout.input_bytes,
                           processes::Arena::Access::worker_reads);
    CaseInput input(challenge, planned, arena.data());
    input.draw(3);
    processes::WorkerSettings settings;
    settings.library = "a";
    const auto worker = world.make_worker(settings, arena, planned.layout.output_bytes, nullptr);
    return execute(world, *worker, input, options, account_, trace);
  }
  // The answers of the phases, in order.
  void script(std::vector<Answer> phases) {
    world_.libraries["a"].run = [phases](const auto&, int nth) {
      return phases.at(static_cast<std::size_t>(nth) % phases.size());
    };
  }
  static Answer with_device(processes::Outcome outcome,
                            std::function<void(processes::DeviceReport&)> change) {
    outcome.device.emplace();
    change(*outcome.device);
    return {.outcome = outcome};
  }

  testing::FakeWorld world_;
  TwoPhases challenge_;
  CaseSpec spec_ = testing::case_spec("one");
  TimeAccount account_;
};

TEST_F(ExecuteTest, TheTimeIsThatOfTheTimedPhase) {
  script({testing::taking(5), testing::taking(2)});
  const CaseResult result = executed();
  EXPECT_EQ(result.verdict, Verdict::ok);
  EXPECT_EQ(result.seconds, 2);
  EXPECT_EQ(account_.submission, 7);
}

TEST_F(ExecuteTest, CachesAreFlushedBeforeTheTimedPhaseOnly) {
  int calls_before_flush = -1;
  executed({.flush_caches = [&] { calls_before_flush = world_.count("run a one"); }});
  EXPECT_EQ(calls_before_flush, 1);
}

TEST_F(ExecuteTest, APhaseThatFailsEndsTheCase) {
  script({testing::ending(Verdict::runtime_error)});
  EXPECT_EQ(executed().verdict, Verdict::runtime_error);
  EXPECT_EQ(world_.count("run a one"), 1);
}

TEST_F(ExecuteTest, AStatusThatIsNotOkEndsThePhasesAndIsJudged) {
  script({Answer{.outcome = {.status = ASSAY_ENOTSUP}}});
  EXPECT_EQ(executed().verdict, Verdict::unsupported);
  EXPECT_EQ(world_.count("run a one"), 1);
}

TEST_F(ExecuteTest, TrustedCodeIsNotJudged) {
  world_.libraries["a"].run = [](const auto&, int) { return testing::wrong(); };
  EXPECT_EQ(executed({.judge = false}).verdict, Verdict::ok);
  EXPECT_EQ(executed({.judge = true}).verdict, Verdict::wrong_answer);
}

TEST_F(ExecuteTest, ScratchIsTheMostOfItsOwnCountAndOfUnexplainedGrowth) {
  const auto scratch = [&](std::uint64_t counted, std::uint64_t grown) {
    world_.libraries["a"].run = [=](const auto&, int) {
      return Answer{.outcome = {.scratch_peak = counted}, .grown_bytes = grown};
    };
    return *find_metric(executed({.measure_memory = true}).metrics, "scratch_bytes");
  };
  EXPECT_EQ(scratch(500, 400), 500);
  EXPECT_EQ(scratch(500, 600), 600);
}

TEST_F(ExecuteTest, AChallengeHoldsItsMetricsToWhatTheProcessGrewByBeyondItsHeap) {
  class Accounting final : public TwoPhases {
    std::string hold_to_account(const CaseSpec&, const CasePlan&, const MemoryAccount& account,
                                std::vector<Metric>& metrics) const override {
      metrics.push_back({"peak", static_cast<double>(account.peak)});
      metrics.push_back({"last", static_cast<double>(account.last_phase_peak)});
      return account.peak > 1000 ? "holds too much" : "";
    }
  } challenge;
  const auto growing = [&](std::uint64_t first, std::uint64_t second) {
    script({Answer{.grown_bytes = first}, Answer{.grown_bytes = second}});
    const auto metrics = executed(challenge, {.measure_memory = true, .heap_limit = 100}).metrics;
    return std::pair(*find_metric(metrics, "peak"), *find_metric(metrics, "last"));
  };
  EXPECT_EQ(growing(700, 300), std::pair(600., 200.));
  EXPECT_EQ(growing(60, 300), std::pair(200., 200.));
  EXPECT_EQ(growing(300, 60), std::pair(200., 0.));
  script({Answer{.grown_bytes = 2000}, Answer()});
  const CaseResult result = executed(challenge, {.measure_memory = true});
  EXPECT_EQ(result.verdict, Verdict::wrong_answer);
  EXPECT_EQ(result.detail, "holds too much");
}

TEST_F(ExecuteTest, WhoWritesBesideABlockOfScratchIsWrongHoweverRightTheOutputs) {
  script({Answer{.outcome = {.overrun = "wrote past the end of a block"}}, Answer()});
  const CaseResult result = executed();
  EXPECT_EQ(result.verdict, Verdict::wrong_answer);
  EXPECT_EQ(result.detail, "wrote past the end of a block");
  script({Answer{.outcome = {.overrun = "wrote past the end of a block"}}, testing::wrong()});
  EXPECT_NE(executed().detail, "wrote past the end of a block") << "what is wrong is said first";
}

// --- what is due before the last phase
// ---------------------------------------------------------------

TEST_F(ExecuteTest, WhatIsWrittenAfterItWasDueDoesNotCount) {
  script({testing::silent(), Answer()});
  EXPECT_EQ(executed(DueFirst(), {}).verdict, Verdict::wrong_answer);
  script({testing::wrong(), Answer()});
  EXPECT_EQ(executed(DueFirst(), {}).verdict, Verdict::wrong_answer);
}

TEST_F(ExecuteTest, WhatIsSpoiledAfterItWasDueWasRight) {
  script({Answer(), testing::wrong()});
  EXPECT_EQ(executed(DueFirst(), {}).verdict, Verdict::ok);
}

TEST_F(ExecuteTest, OutputsAreDueLastUnlessThePlanSaysOtherwise) {
  script({testing::silent(), Answer()});
  EXPECT_EQ(executed().verdict, Verdict::ok);
  script({Answer(), testing::wrong()});
  EXPECT_EQ(executed().verdict, Verdict::wrong_answer);
}

// The output of a timed case is due at the end of the timed phase.
TEST_F(ExecuteTest, WorkPutOffUntilTheClockStandsIsWrong) {
  class TimedFirst final : public testing::Copying {
    CasePlan plan(const CaseSpec& spec) const override {
      CasePlan plan = testing::Copying::plan(spec);
      plan.phases = 3;
      plan.timed_phase = 1;
      return plan;
    }
  } challenge;
  spec_ = testing::case_spec("time", CaseGroup::timed);
  script({testing::silent(), testing::silent(), Answer()});
  EXPECT_EQ(executed(challenge, {}).verdict, Verdict::wrong_answer);
  script({testing::silent(), Answer(), testing::silent()});
  EXPECT_EQ(executed(challenge, {}).verdict, Verdict::ok);
}

TEST_F(ExecuteTest, TheDeviceIsAskedForOutputsWhenTheyAreDue) {
  executed(DueFirst(), {});
  EXPECT_THAT(world_.log, ::testing::ElementsAre("start a", "run a one", "collect a", "run a one",
                                                 "collect a", "end a"));
  world_.log.clear();
  executed();
  EXPECT_EQ(world_.count("collect a"), 1);
}

TEST_F(ExecuteTest, WhatIsComparedBetweenRunsIsWhatWasJudged) {
  Trace first, second;
  executed(DueFirst(), {.keep_outputs = true}, &first);
  script({Answer(), testing::wrong()});
  executed(DueFirst(), {.keep_outputs = true}, &second);
  EXPECT_EQ(first.outputs.size(), 16u);
  EXPECT_EQ(first.outputs, second.outputs);
}

TEST_F(ExecuteTest, TheTraceTellsWhatCameBeforeTheTimedPhase) {
  script({testing::taking(5), testing::taking(2)});
  Trace trace;
  executed(challenge_, {}, &trace);
  EXPECT_EQ(trace.before_s, 5);
}

// --- verdicts of the device beside those of the call
// ------------------------------------------------

TEST_F(ExecuteTest, AFindingOutweighsAWrongAnswer) {
  const Answer raced = with_device({}, [](processes::DeviceReport& r) {
    r.findings = 1;
    r.first_finding = "a race";
  });
  script({raced, testing::wrong()});
  const CaseResult result = executed();
  EXPECT_EQ(result.verdict, Verdict::device_error);
  EXPECT_EQ(result.detail, "a race");
}

TEST_F(ExecuteTest, ALaunchThatWasRefusedExplainsAWrongAnswerAndIsNoFailureByItself) {
  const auto refused = [](processes::DeviceReport& r) {
    r.refused = "the launch of f was refused: why";
  };
  script({with_device({}, refused), testing::wrong()});
  const CaseResult wrong = executed();
  EXPECT_EQ(wrong.verdict, Verdict::wrong_answer);
  EXPECT_THAT(wrong.detail, HasSubstr("; the launch of f was refused: why"));
  script({with_device({}, refused), Answer()});
  EXPECT_EQ(executed().verdict, Verdict::ok);
}

TEST_F(ExecuteTest, ACrashOutweighsAFindingAndBothAreTold) {
  script({with_device({.verdict = Verdict::runtime_error, .detail = "abort"},
                      [](processes::DeviceReport& r) {
                        r.findings = 1;
                        r.first_finding = "a race";
                      })});
  const CaseResult result = executed();
  EXPECT_EQ(result.verdict, Verdict::runtime_error);
  EXPECT_EQ(result.detail, "abort; on the device: a race");
}

TEST_F(ExecuteTest, TooManyInstructionsAreATimeLimit) {
  script({with_device({}, [](processes::DeviceReport& r) { r.over_limit = 1000; }), Answer()});
  EXPECT_EQ(executed().verdict, Verdict::time_limit);
}

// The inputs are five floats. 256 bytes may be copied anyway, and a quarter of those.
TEST_F(ExecuteTest, AResultThatTheHostHasComputedIsNoKernels) {
  const auto copying = [](std::uint64_t bytes) {
    return with_device({}, [bytes](processes::DeviceReport& r) { r.work.to_host_bytes = bytes; });
  };
  script({copying(200), copying(61)});
  EXPECT_EQ(executed().verdict, Verdict::ok);
  script({copying(200), copying(62)});
  const CaseResult result = executed();
  EXPECT_EQ(result.verdict, Verdict::wrong_answer);
  EXPECT_THAT(result.detail,
              HasSubstr("262 bytes were copied to it, and the inputs on the device have 20"));
  spec_.group = CaseGroup::resource;
  EXPECT_EQ(executed().verdict, Verdict::ok) << "grading compares with naive";
}

TEST_F(ExecuteTest, InvalidPtxIsAnErrorOnTheDevice) {
  script({with_device({}, [](processes::DeviceReport& r) { r.invalid_ptx = "line 3"; }), Answer()});
  EXPECT_EQ(executed().verdict, Verdict::device_error);
}

TEST_F(ExecuteTest, WhatNeedsAGpuIsNobodysFaultWhateverElseHappened) {
  script({with_device({.verdict = Verdict::runtime_error}, [](processes::DeviceReport& r) {
    r.unsupported = "cudaGraphCreate";
    r.findings = 1;
  })});
  const CaseResult result = executed();
  EXPECT_EQ(result.verdict, Verdict::needs_gpu);
  EXPECT_THAT(result.detail, HasSubstr("cudaGraphCreate"));
}

// The server needs six seconds per answer, by the world's clock.
class AskedSlowly final : public testing::Copying {
 public:
  explicit AskedSlowly(double& now) : now_(now) {}
  std::unique_ptr<CallbackServer> callbacks(const CaseSpec&, const CasePlan&,
                                            BufferViews) const override {
    class Server final : public CallbackServer {
     public:
      explicit Server(double& now) : now_(now) {}
      std::int32_t serve(std::uint32_t, std::span<const std::byte>, std::span<std::byte>) override {
        now_ += 6;
        return ASSAY_OK;
      }

     private:
      double& now_;
    };
    return std::make_unique<Server>(now_);
  }

 private:
  double& now_;
};

TEST_F(ExecuteTest, CallbacksAreBoundedByTheClockOfTheWorld) {
  std::vector<std::int32_t> answers;
  world_.libraries["a"].asks = [&](CallbackServer& server) {
    for (int i = 0; i < 3; ++i) answers.push_back(server.serve(0, {}, {}));
  };
  executed(AskedSlowly(world_.now), {});
  EXPECT_THAT(answers, ElementsAre(ASSAY_OK, ASSAY_OK, Ne(ASSAY_OK)));
}

TEST_F(ExecuteTest, TheWorkThatCountsIsThatOfTheTimedPhase) {
  const auto launching = [](std::uint64_t n) {
    return with_device({}, [n](processes::DeviceReport& r) { r.work.counters.launches = n; });
  };
  script({launching(7), launching(2)});
  EXPECT_EQ(*find_metric(executed().metrics, "sim_launches"), 2);
}

}  // namespace
}  // namespace assay::cases
