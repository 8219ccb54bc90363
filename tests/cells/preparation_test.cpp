#include "cells/preparation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "util/stop.h"
#include "util/transient_fault.h"

namespace assay::cells {
namespace {

using Faults = std::vector<std::string>;

TEST(Preparation, RunsWhileItsOwnerGoesOn) {
  std::promise<void> may_go_on;
  std::atomic<int> built = 0;
  Preparation both(
      {{"naive", [&] { may_go_on.get_future().wait(), ++built; }}, {"par", [&] { ++built; }}});
  may_go_on.set_value();  // would never be reached if the builds ran in this thread
  EXPECT_EQ(both.finish(), Faults{});
  EXPECT_EQ(built, 2);
}

TEST(Preparation, TellsOnlyOfWhatCanPass) {
  std::atomic<int> built = 0;
  Preparation three({{"naive.cu", [] { throw TransientFault("cannot make a process"); }},
                     {"par.cu", [] { throw Error("par.cu does not compile"); }},
                     {"tests", [&] { ++built; }}});
  EXPECT_EQ(three.finish(), Faults{"while building naive.cu: cannot make a process"});
  EXPECT_EQ(built, 1);
  EXPECT_EQ(three.finish(), Faults{});
}

TEST(Preparation, ARequestToStopEndsItQuietly) {
  std::atomic<int> built = 0;
  Preparation both({{"naive", [] { throw Stopped(); }}, {"par", [&] { ++built; }}});
  EXPECT_EQ(both.finish(), Faults{});
  EXPECT_EQ(built, 0);
}

TEST(Preparation, WaitsForItsThreadWhenItGoes) {
  std::atomic<bool> built = false;
  {
    const Preparation one({{"naive", [&] { built = true; }}});
  }
  EXPECT_TRUE(built);
}

}  // namespace
}  // namespace assay::cells
