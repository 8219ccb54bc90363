#include "device/brief_wait.h"

#include <gtest/gtest.h>

namespace assay::device {
namespace {

// How many waits in turn are left out before it waits again, in vain.
unsigned left_out(BriefWait& wait) {
  unsigned n = 0;
  for (bool asked = false;; ++n) {
    wait.until([&] {
      asked = true;
      return false;
    });
    if (asked) return n;
  }
}

TEST(BriefWait, AsksUntilTheOtherSideIsReady) {
  int asked = 0;
  // Where something else gets the processor meanwhile, the time may be over before.
  for (int tries = 0; tries < 1000 && asked != 3; ++tries) {
    asked = 0;
    BriefWait().until([&] { return ++asked == 3; });
  }
  EXPECT_EQ(asked, 3);
}

TEST(BriefWait, EndsWhenItsTimeIsOver) {
  BriefWait wait;
  EXPECT_GE(wait.until([] { return false; }), BriefWait::kNanoseconds);
}

TEST(BriefWait, IsLeftOutMoreOftenTheMoreOftenItIsInVain) {
  BriefWait wait;
  for (const unsigned n : {0, 1, 3, 7, 15, 31, 63, 63}) EXPECT_EQ(left_out(wait), n);
}

TEST(BriefWait, TakesNoTimeWhereItIsLeftOut) {
  BriefWait wait;
  wait.until([] { return false; });
  EXPECT_EQ(wait.until([] { return true; }), 0u);
}

TEST(BriefWait, ForgetsWhatWasInVainOnceItHelps) {
  BriefWait wait;
  for (int i = 0; i < 3; ++i) left_out(wait);
  bool helped = false;
  while (!helped) wait.until([&] { return helped = true; });
  EXPECT_EQ(left_out(wait), 0u);
  EXPECT_EQ(left_out(wait), 1u);
}

}  // namespace
}  // namespace assay::device
