#include "util/cpu_set.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

namespace assay {
namespace {

TEST(CpuSet, IsEmptyAtFirst) {
  const CpuSet none;
  EXPECT_EQ(none.count(), 0);
  EXPECT_FALSE(none.contains(0));
}

TEST(CpuSet, HoldsCpusBeyondThoseOfCpuSetT) {
  CpuSet set;
  for (const int cpu : {3, CPU_SETSIZE, CpuSet::kMost - 1}) set.add(cpu);
  EXPECT_EQ(set.count(), 3);
  EXPECT_TRUE(set.contains(CPU_SETSIZE));
  EXPECT_TRUE(set.contains(CpuSet::kMost - 1));
  EXPECT_FALSE(set.contains(CPU_SETSIZE + 3));
}

TEST(CpuSet, ThisThreadsAreWhatTheKernelSays) {
  const auto own = CpuSet::of_this_thread();
  ASSERT_TRUE(own);
  EXPECT_GE(own->count(), 1);
  EXPECT_LE(own->count(), ::sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_TRUE(own->contains(::sched_getcpu()));
}

TEST(CpuSet, BindsTheCallingThreadAlone) {
  const auto own = CpuSet::of_this_thread();
  ASSERT_TRUE(own);
  std::thread([] {
    CpuSet one;
    one.add(::sched_getcpu());
    ASSERT_TRUE(one.bind_this_thread());
    const auto now = CpuSet::of_this_thread();
    ASSERT_TRUE(now);
    EXPECT_EQ(now->count(), 1);
  }).join();
  EXPECT_EQ(CpuSet::of_this_thread()->count(), own->count());
}

TEST(CpuSet, NothingBindsToCpusThatAreNotThere) {
  CpuSet last;
  last.add(CpuSet::kMost - 1);
  EXPECT_FALSE(last.bind_this_thread());
}

}  // namespace
}  // namespace assay
