// The ninth challenge's own tests: what every challenge's tests say first, on the fixture that they
// share.
#include <gtest/gtest.h>

#include "call.h"
#include "challenges/challenge_fixture.h"

namespace assay::vector_sum {
namespace {

using testing::ChallengeUnderTest;

const ChallengeUnderTest& subject() {
  static const ChallengeUnderTest loaded("vector_sum");
  return loaded;
}

TEST(VectorSum, EveryBufferIsPlanned) { testing::expect_every_handle_planned(subject(), kHandles); }

TEST(VectorSum, InputsFollowFromTheSeed) {
  testing::expect_inputs_follow_from_seed(subject(), "basic", {kX});
}

TEST(VectorSum, BlankOutputsFail) { testing::expect_blank_outputs_fail(subject(), "basic"); }

TEST(VectorSum, BaselinesPassEveryCaseThatIsNotTimed) {
  testing::expect_passes(subject(), "baselines/naive.cpp", 3);
  testing::expect_passes(subject(), "baselines/par.cpp", 3);
}

TEST(VectorSum, EveryTrapIsInTheListOfAnExample) { testing::expect_traps_covered(subject()); }

}  // namespace
}  // namespace assay::vector_sum
