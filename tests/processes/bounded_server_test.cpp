#include "processes/bounded_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/abi.h"

namespace assay::processes {
namespace {

using ::testing::HasSubstr;

class Slow final : public CallbackServer {
 public:
  explicit Slow(double& now, double seconds) : now_(now), seconds_(seconds) {}
  std::int32_t serve(std::uint32_t, std::span<const std::byte>, std::span<std::byte>) override {
    now_ += seconds_;
    ++served;
    return ASSAY_ECAP;
  }
  std::int64_t served = 0;

 private:
  double &now_, seconds_;
};

TEST(BoundedServer, PassesOnWhatTheChallengeAnswers) {
  double now = 0;
  Slow slow(now, 1);
  BoundedServer bounded(slow, 5, [&] { return now; });
  EXPECT_EQ(bounded.serve(0, {}, {}), ASSAY_ECAP);
  EXPECT_FALSE(bounded.given_up());
}

TEST(BoundedServer, GivesUpAFlood) {
  double now = 0;
  Slow quick(now, 0);
  BoundedServer bounded(quick, 5, [&] { return now; });
  for (std::int64_t i = 0; i < kMostCallbacks; ++i) bounded.serve(0, {}, {});
  EXPECT_FALSE(bounded.given_up());
  EXPECT_EQ(bounded.serve(0, {}, {}), ASSAY_EINTERNAL);
  ASSERT_TRUE(bounded.given_up());
  EXPECT_THAT(bounded.given_up()->detail(), HasSubstr("more than 20000 times"));
  EXPECT_EQ(quick.served, kMostCallbacks);
}

TEST(BoundedServer, GivesUpWhenAnsweringTakesTooLongInAll) {
  double now = 0;
  Slow slow(now, 2);
  BoundedServer bounded(slow, 5, [&] { return now; });
  bounded.serve(0, {}, {});
  now += 100;  // the submission's own time is not counted
  bounded.serve(0, {}, {});
  EXPECT_FALSE(bounded.given_up());
  bounded.serve(0, {}, {});
  ASSERT_TRUE(bounded.given_up());
  EXPECT_THAT(bounded.given_up()->detail(), HasSubstr("more than 5 s"));
}

TEST(BoundedServer, CasesWithALongLimitGetLongerAnswers) {
  CaseSpec spec;
  EXPECT_EQ(callback_seconds(spec), kCallbackSeconds);
  spec.time_limit_s = 30;
  EXPECT_EQ(callback_seconds(spec), 60);
}

}  // namespace
}  // namespace assay::processes
