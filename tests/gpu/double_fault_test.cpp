// Faults on purpose: every function of the double fails on request, at the requested call.
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

#include "gpu/double_fixture.h"

namespace assay::gpu {
namespace {

using ::testing::HasSubstr;

// Calls the function with zeros and null pointers as arguments.
template <class... Parameters>
CUresult call_with_nothing(CUresult (*function)(Parameters...)) {
  return function(Parameters{}...);
}

class DoubleFault : public ContextTest {};

TEST_F(DoubleFault, EveryFunctionFailsAtTheCallThatIsNamed) {
#define ASSAY_CHECK(member, name, parameters)             \
  ASSERT_EQ(set_faults(#name ":4711@2"), 0) << #name;     \
  EXPECT_NE(call_with_nothing(cu.member), 4711) << #name; \
  EXPECT_EQ(call_with_nothing(cu.member), 4711) << #name; \
  EXPECT_NE(call_with_nothing(cu.member), 4711) << #name;
  ASSAY_DRIVER_FUNCTIONS(ASSAY_CHECK)
#undef ASSAY_CHECK
}

TEST_F(DoubleFault, NothingElseOfTheCallHappens) {
  ASSERT_EQ(set_faults("cuMemcpyHtoDAsync_v2:700@1;cuMemsetD8Async:0@1"), 0);
  const CUdeviceptr at = memory();
  EXPECT_EQ(upload<int>(at, {1}), kIllegalAddress);
  EXPECT_EQ(cu.fill(at, 1, 4, nullptr), kSuccess);
  EXPECT_EQ(download<int>(at, 1)[0], 0);
  EXPECT_EQ(cu.stream_synchronize(nullptr), kSuccess);  // the context is not broken
}

TEST_F(DoubleFault, SeveralOfOneFunction) {
  ASSERT_EQ(set_faults("cuStreamSynchronize:700@1;cuStreamSynchronize:702@3;"), 0);
  EXPECT_EQ(cu.stream_synchronize(nullptr), 700);
  EXPECT_EQ(cu.stream_synchronize(nullptr), kSuccess);
  EXPECT_EQ(cu.stream_synchronize(nullptr), 702);
  ASSERT_EQ(set_faults("cuStreamSynchronize:719@1"), 0);  // the count starts again
  EXPECT_EQ(cu.stream_synchronize(nullptr), 719);
  ASSERT_EQ(set_faults("cuStreamSynchronize:719@1"), 0);
  ASSERT_EQ(set_faults(""), 0);
  EXPECT_EQ(cu.stream_synchronize(nullptr), kSuccess);
}

TEST_F(DoubleFault, TextsThatAreNone) {
  ASSERT_EQ(set_faults("cuStreamSynchronize:700@1"), 0);
  const auto complaint = [](const char* text) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(set_faults(text), 1) << text;
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(complaint("cuInit"), HasSubstr("'cuInit' is no fault: write FUNCTION:CODE@CALL"));
  EXPECT_THAT(complaint("cuInit@1:2"), HasSubstr("is no fault"));
  EXPECT_THAT(complaint("cuInvent:1@1"), HasSubstr("no function cuInvent"));
  EXPECT_THAT(complaint("cuInit:1@0"), HasSubstr("counted from 1"));
  EXPECT_THAT(complaint("cuInit:1@"), HasSubstr("counted from 1"));
  EXPECT_THAT(complaint("cuInit:often@1"), HasSubstr("or hang"));
  EXPECT_EQ(cu.stream_synchronize(nullptr), 700);  // the earlier faults are still there
}

// Whether the action is still running when a child process that runs it is interrupted.
template <class Action>
bool hangs(Action action) {
  constexpr int kInterrupted = 42;
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGALRM, [](int) { ::_exit(kInterrupted); });
    const itimerval soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 20'000}};
    ::setitimer(ITIMER_REAL, &soon, nullptr);
    action();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == kInterrupted;
}

TEST_F(DoubleFault, EveryFunctionHangsAtTheCallThatIsNamed) {
#define ASSAY_CHECK(member, name, parameters)         \
  ASSERT_EQ(set_faults(#name ":hang@2"), 0) << #name; \
  call_with_nothing(cu.member);                       \
  EXPECT_TRUE(hangs([this] { call_with_nothing(cu.member); })) << #name;
  ASSAY_DRIVER_FUNCTIONS(ASSAY_CHECK)
#undef ASSAY_CHECK
  ASSERT_EQ(set_faults("cuInit:hang@2"), 0);
  EXPECT_FALSE(hangs([this] { call_with_nothing(cu.init); }));
}

// The state as in /proc: S is asleep.
char state_of_thread(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(stat), {});
  return text.at(text.rfind(')') + 2);
}

TEST_F(DoubleFault, OtherThreadsCallWhileOneHangs) {
  ASSERT_EQ(set_faults("cuInit:hang@1"), 0);
  static std::atomic<pid_t> hung{0};
  std::thread([init = cu.init] {
    hung = ::gettid();
    init(0);
    hung = -1;
  }).detach();
  while (hung == 0 || state_of_thread(hung) != 'S') std::this_thread::yield();
  int count = 0;
  EXPECT_EQ(cu.device_count(&count), kSuccess);
  EXPECT_GT(hung, 0);
}

// Runs in a new process that has not used the double before.
class DoubleFaultEnvironment : public ::testing::Test {
 protected:
  DoubleFaultEnvironment() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  ~DoubleFaultEnvironment() override { ::unsetenv("ASSAY_CUDA_DOUBLE"); }
};

TEST_F(DoubleFaultEnvironment, HoldsTheFirstFaults) {
  ::setenv("ASSAY_CUDA_DOUBLE", "cuInit:100@1", 1);
  EXPECT_EXIT(
      {
        try {
          const Driver cu(double_path());
        } catch (const DriverError& e) {
          std::cerr << e.what();
          ::_exit(3);
        }
        ::_exit(0);
      },
      ::testing::ExitedWithCode(3), "CUDA_ERROR_NO_DEVICE");
}

TEST_F(DoubleFaultEnvironment, EndsTheProcessWhenItIsNoFaultText) {
  ::setenv("ASSAY_CUDA_DOUBLE", "nonsense", 1);
  EXPECT_DEATH({ const Driver cu(double_path()); },
               "environment variable ASSAY_CUDA_DOUBLE: 'nonsense' is no fault");
}

}  // namespace
}  // namespace assay::gpu
