#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

namespace {

cpu_set_t affinity() {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

double processor_seconds(pthread_t thread) {
  clockid_t clock{};
  timespec time{};
  EXPECT_EQ(::pthread_getcpuclockid(thread, &clock), 0);
  EXPECT_EQ(::clock_gettime(clock, &time), 0);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Without help, a thread started on its creator's core has often not run by then.
TEST(SpreadThreads, AThreadHasBegunWhenItsCreatorGoesOn) {
  const cpu_set_t all = affinity();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one core";
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> over{false};
    std::jthread thread([&] { over.wait(false); });
    EXPECT_GT(processor_seconds(thread.native_handle()), 0);
    over = true;
    over.notify_one();
  }
}

TEST(SpreadThreads, MoreThreadsThanCoresBeginToo) {
  std::atomic<int> running{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 20; ++i) threads.emplace_back([&] { ++running; });
  }
  EXPECT_EQ(running, 20);
}

TEST(SpreadThreads, LeavesAThreadFreeToMove) {
  const cpu_set_t all = affinity();
  cpu_set_t inside;
  std::thread([&] { inside = affinity(); }).join();
  EXPECT_TRUE(CPU_EQUAL(&inside, &all));
}

TEST(SpreadThreads, KeepsAttributesOfTheCaller) {
  pthread_attr_t attributes;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
  cpu_set_t inside;
  pthread_t thread;
  const auto look = [](void* p) -> void* {
    *static_cast<cpu_set_t*>(p) = affinity();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, &attributes, look, &inside), 0);
  ASSERT_EQ(::pthread_join(thread, nullptr), 0);
  ::pthread_attr_destroy(&attributes);
  EXPECT_TRUE(CPU_EQUAL(&inside, &one));
}

}  // namespace
