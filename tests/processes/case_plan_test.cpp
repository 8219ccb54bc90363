#include <gtest/gtest.h>

#include "assay/challenge.h"
#include "assay/error.h"

namespace assay {
namespace {

TEST(CasePlan, PlacesBuffersAtTheirHandles) {
  CasePlan plan;
  plan.add(0, {.name = "x", .shape = {2, 3}});
  plan.add(1, {.name = "y", .role = Role::output});
  ASSERT_EQ(plan.buffers.size(), 2u);
  EXPECT_EQ(plan.buffers[1].name, "y");
}

TEST(CasePlan, RefusesABufferOutOfOrder) {
  CasePlan plan;
  EXPECT_THROW(plan.add(1, {.name = "x"}), ChallengeError);
  plan.add(0, {.name = "x"});
  EXPECT_THROW(plan.add(0, {.name = "y"}), ChallengeError);
}

TEST(CasePlan, KnowsTheBuffersThatItPassesAsNull) {
  CasePlan plan;
  plan.add(0, {.name = "x"});
  plan.pass_as_null({"x"});
  EXPECT_TRUE(plan.buffers[0].null);
  EXPECT_THROW(plan.pass_as_null({"z"}), ChallengeError);
}

}  // namespace
}  // namespace assay
