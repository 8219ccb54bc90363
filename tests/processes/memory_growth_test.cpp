#include "processes/memory_growth.h"

#include <gtest/gtest.h>

namespace assay::processes {
namespace {

constexpr std::uint64_t kMega = 1 << 20;

TEST(Beyond, IsNeverNegative) {
  EXPECT_EQ(beyond(5, 3), 2);
  EXPECT_EQ(beyond(3, 5), 0);
}

class GrownByPages : public ::testing::Test {
 protected:
  GrownByPages() {
    account_.before = {.anonymous = 2 * kMega, .files = kMega, .shared = 0};
    account_.now = {.anonymous = 2 * kMega, .files = kMega, .shared = 0, .peak = 103 * kMega};
  }
  PageAccount account_;
};

TEST_F(GrownByPages, WithoutExactFiguresWhatTheKernelMayBeOffByIsLeftOut) {
  EXPECT_EQ(grown_by(account_, 2), 100 * kMega - counter_error(2));
}

TEST_F(GrownByPages, TheLargerOfBothFiguresCounts) {
  account_.exactly_before = {3 * kMega, 2 * kMega};
  account_.exactly_at_most = {103 * kMega + 4096, 2 * kMega};
  EXPECT_EQ(grown_by(account_, 2), 100 * kMega + 4096);
  account_.exactly_at_most = {50 * kMega, 2 * kMega};
  EXPECT_EQ(grown_by(account_, 2), 100 * kMega - counter_error(2));
}

TEST_F(GrownByPages, PagesOfFilesThatBecameItsOwnAreGrowth) {
  account_.now.peak = 3 * kMega;
  account_.exactly_before = {3 * kMega, 2 * kMega};
  account_.exactly_at_most = {3 * kMega, 2 * kMega + 4096};
  EXPECT_EQ(grown_by(account_, 2), 4096);
}

TEST_F(GrownByPages, AnExactFigureNeedsABaseline) {
  account_.exactly_at_most = {103 * kMega, 2 * kMega};
  EXPECT_EQ(grown_by(account_, 2), 100 * kMega - counter_error(2));
}

TEST_F(GrownByPages, PagesOfTheCaseAreNoGrowth) {
  account_.shared = {.of_case = 30 * kMega, .of_callbacks = 10 * kMega};
  EXPECT_EQ(grown_by(account_, 2), 60 * kMega - counter_error(2));
}

TEST_F(GrownByPages, OfFilesTheLibraryAloneIsNoGrowth) {
  account_.library = kMega;
  EXPECT_EQ(grown_by(account_, 2), 100 * kMega - counter_error(2)) << "it is not resident";
  account_.now.files += 20 * kMega;
  EXPECT_EQ(grown_by(account_, 2), 99 * kMega - 4 * 4096 - counter_error(2));
}

TEST(GrownByGroup, LeavesOutWhatWasThereFilesTablesAndCallbacks) {
  GroupAccount account;
  account.before = 5 * kMega;
  account.peak = 105 * kMega + charge_error(2);
  EXPECT_EQ(grown_by(account, 2), 100 * kMega);
  account.files_before = kMega;
  account.files_now = 3 * kMega;
  EXPECT_EQ(grown_by(account, 2), 98 * kMega);
  account.shared.of_case = 512 * kMega;
  EXPECT_EQ(grown_by(account, 2), 97 * kMega) << "a table of pages for each 512th byte";
  account.shared.of_callbacks = 512 * kMega;
  EXPECT_EQ(grown_by(account, 2), 0);
}

TEST(UncountedGrowth, IsLessWhereFiguresAreExact) {
  EXPECT_EQ(uncounted_growth(2, true, std::nullopt), 64 << 10) << "as docs/isolation.md says";
  EXPECT_EQ(uncounted_growth(2, false, std::nullopt), 192 << 10);
  EXPECT_EQ(uncounted_growth(2, true, 100'000), (64 << 10) + kMega + 200'000);
  EXPECT_EQ(uncounted_growth(2, true, 64 * kMega), (64 << 10) + 5 * kMega) << "a padded library";
}

}  // namespace
}  // namespace assay::processes
