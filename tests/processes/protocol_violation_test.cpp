#include "processes/protocol_violation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace assay::processes {
namespace {

TEST(ProtocolViolation, TellsWhatHappenedInTheWordsOfItsRow) {
  EXPECT_EQ(violation<Violation::no_stop>().detail(), "it did not stop when it was told to");
  EXPECT_EQ(violation<Violation::slow_callbacks>(10.4).detail(),
            "its callbacks took more than 10 s to answer");
  EXPECT_EQ(violation<Violation::case_not_readied>("no reply").detail(),
            "kept the worker from readying a case: no reply");
}

TEST(ProtocolViolation, NoTwoRowsAreAlike) {
  std::set<Violation> violations;
  std::set<std::string_view> words;
  for (const ViolationRow& row : kViolations) {
    EXPECT_TRUE(violations.insert(row.violation).second) << row.words;
    EXPECT_TRUE(words.insert(row.words).second) << row.words;
  }
}

}  // namespace
}  // namespace assay::processes
