#include "serve/fair_queue.h"

#include <gtest/gtest.h>

namespace assay::serve {
namespace {

std::string drained(FairQueue& queue) {
  std::string order;
  while (const auto task = queue.pop()) order += *task + " ";
  return order;
}

TEST(FairQueue, AnEmptyOneHasNothing) {
  FairQueue queue;
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(FairQueue, ClientsTakeTurns) {
  FairQueue queue;
  for (const char* task : {"a1", "a2", "a3"}) queue.push(task, "a", 0);
  queue.push("b1", "b", 0);
  queue.push("c1", "c", 0);
  EXPECT_EQ(queue.size(), 5u);
  EXPECT_EQ(drained(queue), "a1 b1 c1 a2 a3 ");
  EXPECT_EQ(queue.size(), 0u);
}

TEST(FairQueue, WhoComesLaterWaitsForOneOfEachOtherClient) {
  FairQueue queue;
  for (const char* task : {"a1", "a2", "a3"}) queue.push(task, "a", 0);
  EXPECT_EQ(queue.pop(), "a1");
  queue.push("b1", "b", 0);
  EXPECT_EQ(drained(queue), "a2 b1 a3 ");
}

TEST(FairQueue, PriorityGoesBeforeTurns) {
  FairQueue queue;
  queue.push("low", "a", 0);
  queue.push("high1", "b", 5);
  queue.push("high2", "b", 5);
  EXPECT_EQ(drained(queue), "high1 high2 low ");
}

TEST(FairQueue, WhatIsRemovedIsNoLongerThere) {
  FairQueue queue;
  queue.push("a1", "a", 0);
  queue.push("a2", "a", 0);
  queue.push("b1", "b", 3);
  EXPECT_TRUE(queue.remove("a1"));
  EXPECT_FALSE(queue.remove("a1"));
  EXPECT_TRUE(queue.remove("b1"));
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(drained(queue), "a2 ");
}

}  // namespace
}  // namespace assay::serve
