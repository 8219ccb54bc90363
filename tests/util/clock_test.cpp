#include "util/clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::Le;
using ::testing::MatchesRegex;

TEST(Clock, TimesAreUtcInIso8601) {
  EXPECT_THAT(utc_now(),
              MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z"));
  EXPECT_THAT(utc_now("%Y"), MatchesRegex("20[0-9][0-9]"));
}

TEST(Clock, TimesDoNotGoBack) {
  const std::string before = utc_now();
  EXPECT_THAT(before, Le(utc_now()));
}

TEST(Clock, NanosecondsAndSecondsAreOfOneClock) {
  const double before = steady_seconds();
  const double between = static_cast<double>(steady_nanoseconds()) * 1e-9;
  const double after = steady_seconds();
  EXPECT_LE(before - 1e-6, between);  // a double is no more precise
  EXPECT_LE(between, after + 1e-6);
}

}  // namespace
}  // namespace assay
