#include "mutate/score.h"

#include <gtest/gtest.h>

namespace assay::mutate {
namespace {

Tally tally_of(std::initializer_list<Fate> fates) {
  Tally tally;
  for (const Fate fate : fates) {
    Result result;
    result.fate = fate;
    tally.add(result);
  }
  return tally;
}

TEST(MutationScore, IsTheShareOfTheKilled) {
  EXPECT_EQ(tally_of({Fate::killed, Fate::killed, Fate::killed, Fate::survived}).score(), 0.75);
  EXPECT_EQ(tally_of({Fate::survived}).score(), 0.0);
}

TEST(MutationScore, CountsWhatOnlyCasesOfSpeedOrMemoryKill) {
  Result result;
  result.fate = Fate::killed;
  Tally one, sum;
  one.add(result);
  result.by_measuring = true;
  one.add(result);
  sum.add(one);
  EXPECT_EQ(sum.killed, 2u);
  EXPECT_EQ(sum.by_measuring, 1u);
}

TEST(MutationScore, LeavesOutWhatNoCaseCanKill) {
  const Tally tally =
      tally_of({Fate::killed, Fate::listed, Fate::same_code, Fate::does_not_compile});
  EXPECT_EQ(tally.score(), 1.0);
  EXPECT_EQ(tally.total(), 4u);
  EXPECT_FALSE(tally_of({Fate::listed, Fate::same_code}).score()) << "nothing counts";
}

TEST(MutationScore, OfSeveralIsOfAllTheirMutants) {
  Tally sum = tally_of({Fate::killed, Fate::killed, Fate::killed});
  sum.add(tally_of({Fate::survived, Fate::listed}));
  EXPECT_EQ(sum.score(), 0.75);
  EXPECT_EQ(sum.listed, 1u);
}

}  // namespace
}  // namespace assay::mutate
