// The real driver of workers, with a real process that misbehaves.
#include "processes/worker_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>
#include <vector>

#include "cases/case_input.h"
#include "cases/fake_world.h"
#include "processes/cores.h"
#include "programs/worker_behaviour.h"
#include "sandbox/memory_group.h"
#include "sandbox/probe.h"
#include "sandbox/worker_image.h"

namespace assay::processes {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Behaviour = testing::WorkerBehaviour;

// Has callbacks, so there is room for them.
class CallingBack final : public testing::Copying {
  bool has_callbacks(const CaseSpec&) const override { return true; }
};

// Keeps the requests that it gets.
class Server final : public CallbackServer {
 public:
  std::int32_t serve(std::uint32_t kind, std::span<const std::byte> request,
                     std::span<std::byte> response) override {
    kinds.push_back(kind);
    request_bytes = request.size();
    response_bytes = response.size();
    return 0;
  }
  std::vector<std::uint32_t> kinds;
  std::size_t request_bytes = 0, response_bytes = 0;
};

class WorkerProcessTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { tier_ = sandbox::find_tier(sandbox::worker_image_fd()).tier; }

  WorkerProcessTest() {
    spec_.limits.memory_bytes = 16 << 20;
    case_.time_limit_s = 0.5;
  }

  // A worker, not yet loaded.
  WorkerProcess start(Behaviour behaviour, const Challenge& challenge = testing::Copying()) {
    return start(behaviour, tier_, challenge);
  }
  WorkerProcess start(Behaviour behaviour, sandbox::Tier tier,
                      const Challenge& challenge = testing::Copying()) {
    const cases::PlannedCase planned = cases::plan_case(challenge, case_);
    plan_ = planned.plan;
    layout_ = planned.layout;
    input_.emplace("input", layout_.input_bytes, Arena::Access::worker_reads);
    WorkerSettings settings;
    settings.tier = tier;
    settings.threads = threads_;
    settings.library = "/dev/null";
    settings.challenge = static_cast<std::uint32_t>(behaviour);
    settings.spec = &spec_;
    settings.image_fd = image_.get();
    settings.on_text = on_text_;
    return WorkerProcess(settings, *input_, layout_.output_bytes + more_output_);
  }
  // The outcome of a phase in a worker that loads.
  Outcome run(Behaviour behaviour, const Challenge& challenge = testing::Copying(),
              BoundedServer* server = nullptr) {
    WorkerProcess worker = start(behaviour, challenge);
    EXPECT_EQ(worker.load().verdict, Verdict::ok);
    worker.set_case(plan_, layout_, 1);
    Outcome outcome = worker.run(0, case_, server);
    EXPECT_EQ(worker.alive(), outcome.verdict == Verdict::ok);
    return outcome;
  }

  // The memory growth of a case in a fresh worker.
  std::uint64_t growth(Behaviour behaviour) {
    WorkerProcess worker = start(behaviour);
    EXPECT_EQ(worker.load().verdict, Verdict::ok);
    worker.set_case(plan_, layout_, 1);
    EXPECT_EQ(worker.prepare().verdict, Verdict::ok);
    worker.reset_peak();
    const Outcome outcome = worker.run(0, case_, nullptr);
    EXPECT_EQ(outcome.verdict, Verdict::ok) << outcome.detail;
    return worker.peak_growth();
  }

  static inline sandbox::Tier tier_ = sandbox::Tier::none;
  const Fd image_{::open(ASSAY_TEST_WORKER, O_RDONLY | O_CLOEXEC)};
  int threads_ = 1;
  std::size_t more_output_ = 0;
  std::function<void(std::string_view)> on_text_;
  ChallengeSpec spec_ = testing::spec_with({});
  CaseSpec case_ = testing::case_spec("one");
  CasePlan plan_;
  Layout layout_;
  std::optional<Arena> input_;
};

TEST_F(WorkerProcessTest, EveryRequestIsAnswered) {
  WorkerProcess worker = start(Behaviour::obeys);
  EXPECT_EQ(worker.load().verdict, Verdict::ok);
  EXPECT_EQ(worker.ping().verdict, Verdict::ok);
  worker.set_case(plan_, layout_, 1);
  EXPECT_EQ(worker.prepare().verdict, Verdict::ok);
  const Outcome phase = worker.run(0, case_, nullptr);
  EXPECT_EQ(phase.verdict, Verdict::ok);
  EXPECT_EQ(phase.status, 3);
  EXPECT_GT(phase.seconds, 0);
  EXPECT_EQ(worker.self_test(10, kInstructionLimit).status, 9);
  EXPECT_TRUE(worker.alive());
  EXPECT_LT(worker.peak_growth(), 64u << 20);
}

TEST_F(WorkerProcessTest, AnExitIsARuntimeErrorThatTellsTheStatus) {
  const Outcome outcome = run(Behaviour::exits);
  EXPECT_EQ(outcome.verdict, Verdict::runtime_error);
  EXPECT_THAT(outcome.detail, HasSubstr("exited with status 5"));
}

TEST_F(WorkerProcessTest, ACrashIsARuntimeErrorThatTellsTheSignal) {
  const Outcome outcome = run(Behaviour::crashes);
  EXPECT_EQ(outcome.verdict, Verdict::runtime_error);
  EXPECT_THAT(outcome.detail, HasSubstr("Segmentation fault"));
}

TEST_F(WorkerProcessTest, WhatItPrintedLastIsTold) {
  const Outcome outcome = run(Behaviour::aborts_with_a_word);
  EXPECT_EQ(outcome.verdict, Verdict::runtime_error);
  EXPECT_THAT(outcome.detail, HasSubstr("last word"));
}

TEST_F(WorkerProcessTest, AllThatItPrintedIsToldWhenItIsGone) {
  std::vector<std::string> told;
  on_text_ = [&](std::string_view text) { told.emplace_back(text); };
  run(Behaviour::aborts_with_a_word);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], HasSubstr("last word"));
  told.clear();
  run(Behaviour::obeys);
  EXPECT_THAT(told, ::testing::ElementsAre(""));
  run(Behaviour::floods);
  EXPECT_GT(told.at(1).size(), 65536u);
  EXPECT_LT(told.at(1).size(), 65536u + 1024);
}

TEST_F(WorkerProcessTest, ATimeLimitIsBusyOrIdle) {
  const Outcome busy = run(Behaviour::spins);
  // On a crowded machine it may get little processor time; then it counts as asleep.
  EXPECT_THAT(busy.verdict, ::testing::AnyOf(Verdict::time_limit, Verdict::idle_limit));
  EXPECT_EQ(busy.seconds, 0.5);
  const Outcome idle = run(Behaviour::sleeps);
  EXPECT_EQ(idle.verdict, Verdict::idle_limit);
  EXPECT_THAT(idle.detail, HasSubstr("no reply within 0.5 s"));
}

// Three other processes keep its core busy, so it takes four times as long as it would alone.
TEST_F(WorkerProcessTest, TimeInWhichOthersHadTheProcessorsIsGivenBack) {
  if (!std::ifstream("/proc/self/schedstat")) GTEST_SKIP() << "the kernel does not count waits";
  case_.time_limit_s = 0.25;
  cpu_set_t core;
  CPU_ZERO(&core);
  // A worker gets the cores of the thread that starts it.
  CPU_SET(worker_cores(threads_).front(), &core);
  std::atomic<bool> on = true;
  std::vector<std::jthread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&on, core] {
      ::sched_setaffinity(0, sizeof core, &core);
      while (on) {
      }
    });
  }
  const Outcome outcome = run(Behaviour::computes);
  const Outcome busy = run(Behaviour::spins);
  on = false;
  EXPECT_EQ(outcome.verdict, Verdict::ok) << outcome.detail;
  EXPECT_THAT(busy.detail, HasSubstr("in which others had the processors"));
}

// All answers up to the stop are found then; afterwards the worker cannot answer.
TEST_F(WorkerProcessTest, SeveralAnswersViolateTheProtocol) {
  const Outcome outcome = run(Behaviour::answers_seven_times);
  EXPECT_EQ(outcome.verdict, Verdict::protocol_violation);
  EXPECT_THAT(outcome.detail, HasSubstr("more than once"));
}

// The submission wrote this count before the worker was done.
TEST_F(WorkerProcessTest, AReplyThatAnswersNoRequestViolatesTheProtocol) {
  const Outcome outcome = run(Behaviour::answers_an_older_request);
  EXPECT_EQ(outcome.verdict, Verdict::protocol_violation);
  EXPECT_THAT(outcome.detail, HasSubstr("the call had not ended"));
}

TEST_F(WorkerProcessTest, AFloodOfTextIsAnOutputLimit) {
  EXPECT_EQ(run(Behaviour::floods).verdict, Verdict::output_limit);
}

TEST_F(WorkerProcessTest, AForbiddenSystemCallIsASecurityViolation) {
  if (tier_ == sandbox::Tier::none) GTEST_SKIP() << "no isolation works here";
  EXPECT_EQ(run(Behaviour::makes_a_socket).verdict, Verdict::security_violation);
}

TEST_F(WorkerProcessTest, ACallbackWhereThereAreNoneViolatesTheProtocol) {
  const Outcome outcome = run(Behaviour::calls_back);
  EXPECT_EQ(outcome.verdict, Verdict::protocol_violation);
  EXPECT_THAT(outcome.detail, HasSubstr("no callbacks"));
}

TEST_F(WorkerProcessTest, ACallbacksSizesAreBounded) {
  Server server;
  BoundedServer bounded(server, kCallbackSeconds, [] { return 0.0; });
  const Outcome outcome = run(Behaviour::calls_back, CallingBack(), &bounded);
  EXPECT_EQ(outcome.verdict, Verdict::ok);
  EXPECT_THAT(server.kinds, ::testing::ElementsAre(8u));
  EXPECT_LE(server.request_bytes, kCallbackPayload);
  EXPECT_LE(server.response_bytes, kCallbackPayload);
}

TEST_F(WorkerProcessTest, GarbageInAReplyHurtsNobody) {
  const Outcome outcome = run(Behaviour::reports_garbage);
  EXPECT_EQ(outcome.verdict, Verdict::ok) << "a status that the judge will refuse";
  EXPECT_NE(outcome.status, 0);
}

TEST_F(WorkerProcessTest, AnyEndWhileLoadingIsALoadError) {
  WorkerProcess worker = start(Behaviour::exits_while_loading);
  const Outcome outcome = worker.load();
  EXPECT_EQ(outcome.verdict, Verdict::load_error);
  EXPECT_THAT(outcome.detail, HasSubstr("while loading: the process exited with status 4"));
  EXPECT_FALSE(worker.alive());
}

TEST_F(WorkerProcessTest, AMessageWithoutAnEndIsCut) {
  const Outcome outcome = start(Behaviour::fails_to_load).load();
  EXPECT_EQ(outcome.verdict, Verdict::load_error);
  EXPECT_THAT(outcome.detail, HasSubstr("mmmm"));
  EXPECT_LT(outcome.detail.size(), sizeof wire::Control::message);
}

TEST_F(WorkerProcessTest, SignalsThatContinueDoNotKeepItFromStopping) {
  if (tier_ == sandbox::Tier::none) GTEST_SKIP() << "no isolation works here";
  EXPECT_EQ(run(Behaviour::storms).verdict, Verdict::ok);
}

TEST_F(WorkerProcessTest, AnotherThreadMayNotAnswerForTheFirst) {
  const Outcome outcome = run(Behaviour::first_thread_leaves);
  EXPECT_EQ(outcome.verdict, Verdict::runtime_error);
  EXPECT_THAT(outcome.detail, HasSubstr("first thread"));
}

// Without a filter that refuses the signals, the worker may be continued for ever. The harness does
// not wait for that.
TEST_F(WorkerProcessTest, WhatWouldNotStopIsEnded) {
  sandbox::Program program;
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  program.exec_fd = image_.get();
  program.argv = {"worker"};
  program.fds = {null.get(), null.get(), null.get()};
  sandbox::Process process = sandbox::spawn(sandbox::Tier::none, program);
  using Stop = sandbox::Process::Stop;
  Stop stop = Stop::stopped;
  for (int attempt = 0; attempt < 1000 && stop == Stop::stopped; ++attempt) {
    stop = process.stop(std::chrono::milliseconds(200));
    if (stop != Stop::stopped) break;
    process.resume();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it has not got that far yet
  }
  EXPECT_EQ(stop, Stop::refused);
  const auto exit = process.wait({});
  ASSERT_TRUE(exit.has_value()) << "it runs on";
  EXPECT_EQ(exit->status, SIGKILL);
}

TEST_F(WorkerProcessTest, KeepingACaseFromBeingReadiedViolatesTheProtocol) {
  WorkerProcess worker = start(Behaviour::keeps_from_readying);
  ASSERT_EQ(worker.load().verdict, Verdict::ok);
  worker.set_case(plan_, layout_, 1);
  const Outcome outcome = worker.prepare();
  EXPECT_EQ(outcome.verdict, Verdict::protocol_violation);
  EXPECT_THAT(outcome.detail, HasSubstr("kept the worker from readying a case"));
}

TEST_F(WorkerProcessTest, ComputingWhileACaseIsReadiedViolatesTheProtocol) {
  WorkerProcess worker = start(Behaviour::computes_meanwhile);
  ASSERT_EQ(worker.load().verdict, Verdict::ok);
  worker.set_case(plan_, layout_, 1);
  const Outcome outcome = worker.prepare();
  EXPECT_EQ(outcome.verdict, Verdict::protocol_violation);
  EXPECT_THAT(outcome.detail, HasSubstr("processor time while a case was readied"));
}

TEST_F(WorkerProcessTest, ItHasTheCoresOfItsThreadsAndNoOthers) {
  if (tier_ == sandbox::Tier::none) GTEST_SKIP() << "no isolation works here";
  EXPECT_EQ(run(Behaviour::tells_its_cores).status, 1);
}

// Without a filter the worker can take more cores; its processor time shows it.
TEST_F(WorkerProcessTest, MoreCoresThanThreadsFailTheCall) {
  case_.time_limit_s = 10;
  Outcome outcome;
  int most = 0;  // hundredths of a core, as the worker reports it
  for (int attempt = 0; attempt < 10 && outcome.verdict == Verdict::ok; ++attempt) {
    WorkerProcess worker = start(Behaviour::keeps_cores_busy, sandbox::Tier::none);
    ASSERT_EQ(worker.load().verdict, Verdict::ok);
    worker.set_case(plan_, layout_, 1);
    outcome = worker.run(0, case_, nullptr);
    if (outcome.verdict == Verdict::ok) most = std::max(most, outcome.status);
  }
  if (outcome.verdict == Verdict::ok && most < 150) {
    GTEST_SKIP() << "one core, or too busy a machine: it got " << most << " % of a core";
  }
  EXPECT_EQ(outcome.verdict, Verdict::protocol_violation);
  EXPECT_THAT(outcome.detail, HasSubstr("cores busy where 1 are allowed"));
}

TEST_F(WorkerProcessTest, MemoryCountsFromBeforeTheSubmissionIsLoaded) {
  EXPECT_EQ(growth(Behaviour::obeys), 0u);
  EXPECT_GE(growth(Behaviour::loads_a_pool), 47u << 20);
  EXPECT_GE(growth(Behaviour::loads_a_little), 256u << 10);
  EXPECT_GE(growth(Behaviour::passes_a_pool), 46u << 20) << "what is given back counts";
}

TEST_F(WorkerProcessTest, ThreadsAndTheirStacksAreNoGrowth) {
  threads_ = 2;
  EXPECT_EQ(growth(Behaviour::starts_threads), 0u);
}

TEST_F(WorkerProcessTest, OutputsThatTheCaseDoesNotUseAreNoFreeMemory) {
  more_output_ = 32 << 20;
  EXPECT_EQ(growth(Behaviour::obeys), 0u);
  EXPECT_GE(growth(Behaviour::hoards_output), 30u << 20);
}

TEST_F(WorkerProcessTest, WhatTakesTooMuchMemoryIsEndedByTheKernelWhichSaysSo) {
  if (sandbox::memory_groups().version == 0) GTEST_SKIP() << sandbox::memory_groups().why_not;
  case_.time_limit_s = 30;
  const Outcome outcome = run(Behaviour::bombs);
  EXPECT_EQ(outcome.verdict, Verdict::memory_limit) << outcome.detail;
}

// Whatever the worker does to what it shares with the harness, and whenever, the harness returns in
// time with a verdict: it never waits without a limit. A hang shows as this test's time limit.
class AnyWorker : public WorkerProcessTest, public ::testing::WithParamInterface<int> {};

TEST_P(AnyWorker, NeverKeepsTheHarnessWaiting) {
  if (tier_ == sandbox::Tier::none) GTEST_SKIP() << "no isolation works here";
  for (int seed = 0; seed < 25; ++seed) {
    spec_.limits.memory_bytes = (16 << 20) + GetParam() * 25 + seed;
    spec_.limits.load_time_s = 0.2;
    case_.time_limit_s = 0.2;
    const CallingBack challenge;
    Server server;
    BoundedServer bounded(server, kCallbackSeconds, [] { return 0.0; });
    WorkerProcess worker = start(Behaviour::does_anything, challenge);
    Outcome outcome = worker.load();
    for (int step = 0; step < 3 && outcome.verdict == Verdict::ok; ++step) {
      worker.set_case(plan_, layout_, 1);
      outcome = worker.run(0, case_, &bounded);
    }
    EXPECT_THAT(outcome.verdict,
                ::testing::AnyOf(Verdict::ok, Verdict::protocol_violation, Verdict::load_error,
                                 Verdict::time_limit, Verdict::idle_limit, Verdict::runtime_error,
                                 Verdict::output_limit, Verdict::security_violation))
        << "seed " << seed << ": " << outcome.detail;
    EXPECT_EQ(worker.alive(), outcome.verdict == Verdict::ok) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyWorker, ::testing::Range(0, 4));

TEST_F(WorkerProcessTest, ARequestToAWorkerThatHasEndedIsTheHarnesssMistake) {
  WorkerProcess worker = start(Behaviour::exits);
  ASSERT_EQ(worker.load().verdict, Verdict::ok);
  worker.set_case(plan_, layout_, 1);
  worker.run(0, case_, nullptr);
  EXPECT_THROW(worker.ping(), std::exception);
}

}  // namespace
}  // namespace assay::processes
