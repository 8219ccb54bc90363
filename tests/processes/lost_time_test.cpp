#include "processes/lost_time.h"

#include <gtest/gtest.h>

namespace assay::processes {
namespace {

constexpr pid_t kFirst = 7, kSecond = 8;

TEST(LostTime, IsThatOfTheThreadThatWaitedLongest) {
  const Scheduling before{.queued = {{kFirst, 1}, {kSecond, 4}}, .processor = 10};
  const Scheduling now{.queued = {{kFirst, 3}, {kSecond, 5}}, .processor = 12};
  EXPECT_EQ(lost_seconds(before, now, 4, 2), 2);
  EXPECT_EQ(lost_seconds(before, before, 4, 2), 0) << "what was before does not count again";
}

TEST(LostTime, CountsForAThreadThatBeganInBetween) {
  EXPECT_EQ(lost_seconds({}, {.queued = {{kFirst, 0.5}}, .processor = 1}, 2, 1), 0.5);
}

TEST(LostTime, IsNoneWhereTheProcessKeptItsCoresBusy) {
  // Eight threads on two cores: each has waited for three quarters of the time.
  Scheduling now;
  now.processor = 8;
  for (pid_t thread = 0; thread < 8; ++thread) now.queued[thread] = 3;
  EXPECT_EQ(lost_seconds({}, now, 4, 2), 0);
  now.processor = 7;  // others had a core for a second
  EXPECT_EQ(lost_seconds({}, now, 4, 2), 1);
  now.processor = 8.1;  // the two clocks may disagree a little
  EXPECT_EQ(lost_seconds({}, now, 4, 2), 0);
}

TEST(LostTime, IsNoneWhereTheKernelDoesNotSay) { EXPECT_EQ(lost_seconds({}, {}, 4, 2), 0); }

}  // namespace
}  // namespace assay::processes
