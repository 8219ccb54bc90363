#include "processes/cores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <map>
#include <thread>
#include <vector>

#include "assay/parallel.h"

namespace assay::processes {
namespace {

TEST(WorkerCores, AreAsManyAsAreAskedForAndThereAre) {
  const int all = available_cores();
  EXPECT_EQ(worker_cores(1).size(), 1u);
  EXPECT_EQ(worker_cores(all).size(), static_cast<std::size_t>(all));
  EXPECT_EQ(worker_cores(all + 5).size(), static_cast<std::size_t>(all));
  EXPECT_EQ(worker_cores(0).size(), 1u);
}

TEST(WorkerCores, OfOneThreadStayTheSame) { EXPECT_EQ(worker_cores(1), worker_cores(1)); }

TEST(WorkerCores, OfThreadsSideBySideAreSpread) {
  const int threads = available_cores();
  std::vector<int> core(static_cast<std::size_t>(threads));
  std::barrier all_have_some(threads);
  {
    std::vector<std::jthread> running;
    for (int& c : core) {
      running.emplace_back([&c, &all_have_some] {
        c = worker_cores(1).front();
        all_have_some.arrive_and_wait();
      });
    }
  }
  std::map<int, int> users;
  for (const int c : core) ++users[c];
  // The calling thread may hold one more.
  for (const auto& [c, n] : users) EXPECT_LE(n, 2) << "core " << c;
  EXPECT_GE(users.size(), static_cast<std::size_t>((threads + 1) / 2));
}

TEST(WorkerCores, AreFreeAgainWithTheThread) {
  std::vector<int> first, second;
  std::thread([&] { first = worker_cores(1); }).join();
  std::thread([&] { second = worker_cores(1); }).join();
  EXPECT_EQ(first, second);
}

TEST(TooManyCores, AreToldByProcessorTime) {
  EXPECT_FALSE(too_many_cores(1.0, 1.0, 1));
  EXPECT_FALSE(too_many_cores(2.0, 1.0, 2));
  EXPECT_FALSE(too_many_cores(0.004, 0.0001, 1)) << "clocks differ by a little";
  EXPECT_EQ(too_many_cores(9.7, 1.0, 2)->detail(), "kept 9.7 cores busy where 2 are allowed");
  EXPECT_TRUE(too_many_cores(1.1, 1.0, 1));
}

}  // namespace
}  // namespace assay::processes
