#include "ask/retry.h"

#include <gtest/gtest.h>

namespace assay::ask {
namespace {

Fault status(int code, std::optional<double> retry_after = {}) {
  return {Fault::Kind::status, code, "", retry_after};
}
Fault of_kind(Fault::Kind kind) { return {kind, 0, ""}; }

std::optional<double> wait(const Fault& fault, unsigned failures, double jitter = 1,
                           bool reached = true) {
  return wait_before_retry({}, fault, failures, reached, jitter);
}

TEST(Retry, WaitsLongerEachTime) {
  EXPECT_EQ(wait(status(503), 1), 1.0);
  EXPECT_EQ(wait(status(503), 2), 2.0);
  EXPECT_EQ(wait(status(503), 6), 32.0);
  EXPECT_EQ(wait(status(503), 7), std::nullopt);
  EXPECT_EQ(wait(status(503), 2, 0), 1.0);
  RetryPolicy many;
  many.retries = 1000;
  EXPECT_EQ(wait_before_retry(many, status(503), 900, true, 1), many.longest_wait);
}

TEST(Retry, OnlyWhatPasses) {
  for (const int code : {408, 409, 425, 429, 500, 502, 503, 504, 529})
    EXPECT_TRUE(is_passing(status(code), true)) << code;
  for (const int code : {301, 400, 401, 402, 403, 404, 413, 422})
    EXPECT_FALSE(is_passing(status(code), true)) << code;
  EXPECT_TRUE(is_passing(of_kind(Fault::Kind::cut), false));
  EXPECT_TRUE(is_passing(of_kind(Fault::Kind::damaged), false));
  EXPECT_TRUE(is_passing(of_kind(Fault::Kind::timed_out), false));
  EXPECT_FALSE(is_passing(of_kind(Fault::Kind::insecure), true));
  EXPECT_FALSE(is_passing(of_kind(Fault::Kind::refused), true));
}

TEST(Retry, AHostThatNeverAnsweredIsWrongAndOneThatDidIsBack) {
  EXPECT_EQ(wait(of_kind(Fault::Kind::unreachable), 1, 1, false), std::nullopt);
  EXPECT_EQ(wait(of_kind(Fault::Kind::unreachable), 1, 1, true), 1.0);
}

TEST(Retry, WaitsAsLongAsAskedWithinReason) {
  EXPECT_EQ(wait(status(429, 17), 1), 17.0);
  EXPECT_EQ(wait(status(429, 0), 3), 4.0);
  EXPECT_EQ(wait(status(429, 86400), 1), std::nullopt);
}

TEST(Retry, WhatConcernsAllEndsAll) {
  for (const int code : {301, 401, 402, 403, 404}) EXPECT_TRUE(concerns_all(status(code))) << code;
  for (const int code : {400, 413, 429, 500}) EXPECT_FALSE(concerns_all(status(code))) << code;
  EXPECT_TRUE(concerns_all(of_kind(Fault::Kind::unreachable)));
  EXPECT_FALSE(concerns_all(of_kind(Fault::Kind::cut)));
}

TEST(RetryAfter, IsSecondsOrADate) {
  EXPECT_EQ(retry_after_seconds("120", 0), 120.0);
  EXPECT_EQ(retry_after_seconds("0.5", 0), 0.5);
  EXPECT_EQ(retry_after_seconds("Fri, 31 Dec 1999 23:59:59 GMT", 946684789), 10.0);
  EXPECT_EQ(retry_after_seconds("Fri, 31 Dec 1999 23:59:59 GMT", 946684900), 0.0);
  for (const char* header : {"", "soon", "-1", "nan", "12 seconds", "Fri, 31 Dec 1999"})
    EXPECT_EQ(retry_after_seconds(header, 0), std::nullopt) << header;
}

}  // namespace
}  // namespace assay::ask
