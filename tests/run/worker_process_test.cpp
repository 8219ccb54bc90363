// The real driver of workers against a real process that misbehaves.
#include "run/worker_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_world.h"
#include "programs/worker_behaviour.h"
#include "run/case_input.h"
#include "sandbox/probe.h"
#include "sandbox/worker_image.h"

namespace assay::run {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Behaviour = testing::WorkerBehaviour;

// With callbacks, so that there is room for them.
class CallingBack final : public testing::Copying {
  bool has_callbacks(const CaseSpec&) const override { return true; }
};

// Keeps what it is asked.
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
    const PlannedCase planned = plan_case(challenge, case_);
    plan_ = planned.plan;
    layout_ = planned.layout;
    input_.emplace("input", layout_.input_bytes, Arena::Access::worker_reads);
    WorkerSettings settings;
    settings.tier = tier_;
    settings.library = "/dev/null";
    settings.challenge = static_cast<std::uint32_t>(behaviour);
    settings.spec = &spec_;
    settings.image_fd = image_.get();
    return WorkerProcess(settings, *input_, layout_.output_bytes);
  }
  // What comes of a phase of a worker that loads.
  Outcome run(Behaviour behaviour, const Challenge& challenge = testing::Copying(),
              CallbackServer* server = nullptr) {
    WorkerProcess worker = start(behaviour, challenge);
    EXPECT_EQ(worker.load().verdict, Verdict::ok);
    worker.set_case(plan_, layout_, 1);
    const Outcome outcome = worker.run(0, case_, server);
    EXPECT_EQ(worker.alive(), outcome.verdict == Verdict::ok);
    return outcome;
  }

  static inline sandbox::Tier tier_ = sandbox::Tier::none;
  const Fd image_{::open(ASSAY_TEST_WORKER, O_RDONLY | O_CLOEXEC)};
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
  EXPECT_EQ(worker.self_test(10).status, 9);
  EXPECT_TRUE(worker.alive());
  EXPECT_GT(worker.resident_bytes(), 0u);
  EXPECT_GE(worker.peak_bytes(), worker.resident_bytes());
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

TEST_F(WorkerProcessTest, ATimeLimitIsBusyOrIdle) {
  const Outcome busy = run(Behaviour::spins);
  // On a crowded machine it may get little of a processor; then it counts as asleep.
  EXPECT_THAT(busy.verdict, ::testing::AnyOf(Verdict::time_limit, Verdict::idle_limit));
  EXPECT_EQ(busy.seconds, 0.5);
  const Outcome idle = run(Behaviour::sleeps);
  EXPECT_EQ(idle.verdict, Verdict::idle_limit);
  EXPECT_THAT(idle.detail, HasSubstr("no reply within 0.5 s"));
}

// Whatever it answers until it is stopped is found then; afterwards it cannot answer.
TEST_F(WorkerProcessTest, AForgedCountViolatesTheProtocol) {
  const Outcome outcome = run(Behaviour::counts_seven);
  EXPECT_EQ(outcome.verdict, Verdict::protocol_violation);
  EXPECT_THAT(outcome.detail, HasSubstr("more than once"));
}

// A count that the submission wrote before the worker was done.
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
  const Outcome outcome = run(Behaviour::calls_back, CallingBack(), &server);
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

TEST_F(WorkerProcessTest, ARequestToAWorkerThatHasEndedIsTheHarnesssMistake) {
  WorkerProcess worker = start(Behaviour::exits);
  ASSERT_EQ(worker.load().verdict, Verdict::ok);
  worker.set_case(plan_, layout_, 1);
  worker.run(0, case_, nullptr);
  EXPECT_THROW(worker.ping(), std::exception);
}

}  // namespace
}  // namespace assay::run
