#include "attack/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::attack {
namespace {

Row row(const std::string& outcome, const std::string& complaint = "",
        const std::string& canary = "") {
  Row r;
  r.attack.canary = canary;
  r.seen.outcome = outcome;
  r.complaint = complaint;
  return r;
}

constexpr sandbox::Tier kTier = sandbox::Tier::landlock;

TEST(Tally, CountsWhatWasCaughtMissedAndSkipped) {
  const Tally tally({row("WA"), row("SV"), row("honest", "expected WA"), row(kSkipped)});
  EXPECT_EQ(tally.caught, 2u);
  EXPECT_EQ(tally.missed, 1u);
  EXPECT_EQ(tally.skipped, 1u);
  EXPECT_FALSE(tally.good());
  EXPECT_EQ(tally.text(kTier), "2 of 3 attacks caught (66.7 %), 1 skipped; landlock+seccomp");
}

TEST(Tally, CanariesAreNoAttacks) {
  const Tally tally({row("WA"), row("WA", "", "verdict"), row(kSkipped, "", "gain")});
  EXPECT_EQ(tally.caught, 1u);
  EXPECT_EQ(tally.reported, 1u) << "one that was skipped was not reported";
  EXPECT_TRUE(tally.good());
  EXPECT_EQ(
      tally.text(kTier),
      "1 of 1 attacks caught (100.0 %), 0 skipped; landlock+seccomp; 1 of 1 canaries reported");
}

TEST(Tally, ASuiteThatIsBlindIsNotGood) {
  const Tally tally({row("WA"), row("WA", "the suite is blind", "neighbour")});
  EXPECT_FALSE(tally.good());
  EXPECT_THAT(tally.text(kTier),
              ::testing::EndsWith("; 0 of 1 canaries reported, BLIND to neighbour"));
}

TEST(Tally, NothingThatRanIsNoCatchRate) {
  EXPECT_EQ(Tally({}).text(kTier), "0 of 0 attacks caught (0.0 %), 0 skipped; landlock+seccomp");
}

TEST(Row, IsSkippedOnlyWhereNothingIsWrongWithThat) {
  EXPECT_TRUE(row(kSkipped).skipped());
  EXPECT_FALSE(row(kSkipped, "expected WA").skipped());
}

}  // namespace
}  // namespace assay::attack
