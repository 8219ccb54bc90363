#include "processes/worker_diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

namespace assay::processes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kMega = 1 << 20;

EndFacts killed_by(int signal) {
  return {.status = W_EXITCODE(0, signal),
          .most_resident = 40 * kMega,
          .arenas = 32 * kMega,
          .memory_limit = 16 * kMega};
}

TEST(DiagnoseEnd, AnExitTellsItsStatus) {
  const Diagnosis exited = diagnose_end({.status = W_EXITCODE(5, 0)});
  EXPECT_EQ(exited.verdict, Verdict::runtime_error);
  EXPECT_EQ(exited.detail, "the process exited with status 5 during the call");
}

TEST(DiagnoseEnd, ASignalIsARuntimeErrorWithAHint) {
  const Diagnosis crashed = diagnose_end(killed_by(SIGFPE));
  EXPECT_EQ(crashed.verdict, Verdict::runtime_error);
  EXPECT_EQ(crashed.detail, "ended by Floating point exception (integer division by zero)");
}

TEST(DiagnoseEnd, TheSignalsOfTheSandboxHaveVerdictsOfTheirOwn) {
  EXPECT_EQ(diagnose_end(killed_by(SIGSYS)).verdict, Verdict::security_violation);
  EXPECT_EQ(diagnose_end(killed_by(SIGXCPU)).verdict, Verdict::time_limit);
}

TEST(DiagnoseEnd, AKillIsTheMemoryLimitWhereTheGroupSaysSo) {
  EndFacts killed = killed_by(SIGKILL);
  EXPECT_EQ(diagnose_end(killed).verdict, Verdict::runtime_error);
  killed.out_of_memory = true;
  EXPECT_EQ(diagnose_end(killed).verdict, Verdict::memory_limit);
  EXPECT_EQ(diagnose_end(killed).detail, "the kernel ended it at the memory limit of 16 MiB");
}

TEST(DiagnoseEnd, MemoryIsSuspectedNearTheLimitOrByTheLastWord) {
  constexpr char kSuspicion[] = "(memory suspected: the limit is 16 MiB)";
  EndFacts aborted = killed_by(SIGABRT);
  EXPECT_THAT(diagnose_end(aborted).detail, Not(HasSubstr("memory suspected")));
  aborted.most_resident = 47 * kMega;
  EXPECT_THAT(diagnose_end(aborted).detail, HasSubstr(kSuspicion));
  aborted.most_resident = 40 * kMega;
  aborted.output = "terminate called after throwing 'std::bad_alloc'";
  EXPECT_THAT(diagnose_end(aborted).detail, HasSubstr(kSuspicion));
}

TEST(DiagnoseSilence, IsBusyOrAsleepByItsProcessorTime) {
  EXPECT_EQ(diagnose_silence(10, 0, 3).verdict, Verdict::time_limit);
  const Diagnosis asleep = diagnose_silence(10, 0, 2.9);
  EXPECT_EQ(asleep.verdict, Verdict::idle_limit);
  EXPECT_EQ(asleep.detail, "no reply within 10 s (2.90 s of processor time used)");
}

TEST(DiagnoseSilence, TellsWhatWasGivenBack) {
  EXPECT_EQ(diagnose_silence(2, 1.5, 2).detail,
            "no reply within 2 s and 1.5 s in which others had the processors (2.00 s of "
            "processor time used)");
}

TEST(DiagnoseLoadFailure, IsWhatTheLinkerSaysMadePrintable) {
  const Diagnosis failed = diagnose_load_failure("a.so: undefined symbol: f\x01", false);
  EXPECT_EQ(failed.verdict, Verdict::load_error);
  EXPECT_EQ(failed.detail, "a.so: undefined symbol: f\\x01");
}

TEST(DiagnoseLoadFailure, AFunctionThatTheSimulatedRuntimeLacksNeedsAGpu) {
  constexpr char kLinker[] = "a.so: undefined symbol: cudaGraphLaunch, version 12";
  const Diagnosis lacking = diagnose_load_failure(kLinker, true);
  EXPECT_EQ(lacking.verdict, Verdict::needs_gpu);
  EXPECT_EQ(lacking.detail, "needs a GPU (cudaGraphLaunch)");
  EXPECT_EQ(diagnose_load_failure(kLinker, false).verdict, Verdict::load_error);
  EXPECT_EQ(diagnose_load_failure("undefined symbol: __cudaX", true).detail,
            "needs a GPU (__cudaX)");
  EXPECT_EQ(diagnose_load_failure("undefined symbol: mine", true).verdict, Verdict::load_error);
  EXPECT_EQ(diagnose_load_failure("undefined symbol: ", true).verdict, Verdict::load_error);
}

TEST(WhileLoading, AnyEndButAForbiddenCallIsALoadError) {
  const Outcome crashed =
      while_loading({.verdict = Verdict::runtime_error, .detail = "ended", .seconds = 2});
  EXPECT_EQ(crashed.verdict, Verdict::load_error);
  EXPECT_EQ(crashed.detail, "while loading: ended");
  EXPECT_EQ(crashed.seconds, 2);
  EXPECT_EQ(while_loading({.verdict = Verdict::security_violation}).verdict,
            Verdict::security_violation);
  EXPECT_EQ(while_loading({}).verdict, Verdict::ok);
  EXPECT_EQ(while_loading({}).detail, "");
}

TEST(DescribeOverrun, TellsTheSideAndTheBlock) {
  EXPECT_EQ(describe_overrun(0, 64), "");
  EXPECT_EQ(describe_overrun(1, 64),
            "wrote before the start of a block of 64 bytes that ctx->alloc gave");
  EXPECT_EQ(describe_overrun(2, 64),
            "wrote past the end of a block of 64 bytes that ctx->alloc gave");
  EXPECT_EQ(describe_overrun(3, 64), "") << "the worker says so, and what it says is hostile";
}

TEST(Diagnosis, AViolationIsOne) {
  const Diagnosis violated = violation<Violation::no_stop>();
  EXPECT_EQ(violated.verdict, Verdict::protocol_violation);
  EXPECT_EQ(violated.detail, "it did not stop when it was told to");
}

}  // namespace
}  // namespace assay::processes
