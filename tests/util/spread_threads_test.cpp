#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <thread>

namespace {

cpu_set_t affinity() {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return set;
}

// Keeps the calling thread on the core where it is.
class Pinned {
 public:
  Pinned() : before_(affinity()), core_(::sched_getcpu()) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core_, &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~Pinned() { ::sched_setaffinity(0, sizeof before_, &before_); }
  int core() const { return core_; }

 private:
  cpu_set_t before_;
  int core_;
};

TEST(SpreadThreads, StartsAThreadAwayFromItsCreator) {
  const cpu_set_t all = affinity();
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one core";
  std::thread([] {}).join();  // notes the cores before the creator is pinned
  const Pinned creator;
  constexpr int kThreads = 50;
  int away = 0;
  for (int i = 0; i < kThreads; ++i) {
    std::thread([&] { away += ::sched_getcpu() != creator.core(); }).join();
  }
  EXPECT_GE(away, kThreads * 4 / 5);  // a busy machine may move one at once
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
