#include "judge/marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "opinions.h"

namespace assay::judge {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::reply_with;
using testing::two_criteria;

ReadMarks read(const std::string& reply) {
  ReadMarks marks = read_marks(reply, two_criteria());
  EXPECT_EQ(marks.marks.empty(), !marks.problem.empty()) << reply;
  return marks;
}
std::string problem(const std::string& reply) { return read(reply).problem; }

const auto kSevenAndSix = ElementsAre(Mark{"design", 7, "parts"}, Mark{"clarity", 6.5, "names"});

TEST(Marks, AreReadInTheRubricsOrder) {
  EXPECT_THAT(read(reply_with("7", "6.5")).marks, kSevenAndSix);
  EXPECT_THAT(read(R"({"clarity": {"reason": "names", "mark": 6.5},
                       "design": {"mark": 7, "reason": "parts"}})")
                  .marks,
              kSevenAndSix);
}

TEST(Marks, BothEndsOfTheRangeCount) {
  EXPECT_THAT(read(reply_with("0", "10")).problem, IsEmpty());
}

TEST(Marks, TextAroundTheObjectIsPassedOver) {
  const std::string object = reply_with("7", "6.5");
  for (const std::string& reply :
       {fmt::format("Here you are:\n```json\n{}\n```\nGood luck {{ to }} you.", object),
        fmt::format("In `for (;;) {{ x }}` the \"loop is {{ odd.\n{}", object),
        fmt::format("{0}\n{0}", object), fmt::format("{{\"thought\": {{\"x\": 1}}}}\n{}", object)})
    EXPECT_THAT(read(reply).marks, kSevenAndSix) << reply;
  EXPECT_THAT(read(R"({"overall": 10, "design": {"mark": 7, "reason": "parts", "sure": true},
                       "clarity": {"mark": 6.5, "reason": "names"}})")
                  .marks,
              kSevenAndSix);
}

TEST(Marks, ABraceInAReasonIsText) {
  const ReadMarks marks = read(
      R"({"design": {"mark": 1, "reason": "a }}} and a \" {"}, "clarity": {"mark": 2, "reason": "b"}})");
  ASSERT_EQ(marks.marks.size(), 2U);
  EXPECT_EQ(marks.marks[0].reason, "a }}} and a \" {");
}

TEST(Marks, NumbersOutOfTheRangeAreNone) {
  for (const char* number : {"11", "-1", "10.001", "1e300", "-0.5"})
    EXPECT_THAT(problem(reply_with(number, "5")), HasSubstr("not from 0 to 10")) << number;
  for (const char* number : {"\"7\"", "\"7/10\"", "true", "null", "[7]"})
    EXPECT_THAT(problem(reply_with(number, "5")), HasSubstr("no number")) << number;
  // The first two are not JSON, and no type holds the third.
  for (const char* number : {"NaN", "Infinity", "1e999"})
    EXPECT_NE(problem(reply_with(number, "5")), "") << number;
}

TEST(Marks, ACriterionThatIsMissingMakesNone) {
  EXPECT_THAT(problem(R"({"design": {"mark": 7, "reason": "parts"}})"),
              HasSubstr("no member 'clarity'"));
  EXPECT_THAT(problem(R"({"design": 7, "clarity": 6})"), HasSubstr("no object with a mark"));
  EXPECT_THAT(problem(R"({"design": {"mark": 7, "reason": " "}, "clarity": {"mark": 6}})"),
              HasSubstr("'design' has no reason"));
}

TEST(Marks, WhatIsAmbiguousIsNone) {
  EXPECT_THAT(problem(reply_with("10", "10") + "\n" + reply_with("3", "3")),
              HasSubstr("several JSON objects"));
  // For example if the judge quotes what a hostile answer told it to say.
  EXPECT_THAT(problem("The file says {\"design\": 10}.\n" + reply_with("3", "3")),
              HasSubstr("several JSON objects"));
  EXPECT_THAT(
      problem(R"({"design": {"mark": 2, "reason": "r"}, "clarity": {"mark": 2, "reason": "r"},
                          "design": {"mark": 10, "reason": "r"}})"),
      HasSubstr("twice"));
  EXPECT_THAT(problem(R"({"design": {"mark": 2, "mark": 9, "reason": "r"},
                          "clarity": {"mark": 2, "reason": "r"}})"),
              HasSubstr("twice"));
}

TEST(Marks, WhatIsNoOpinionIsSaidToBeNone) {
  EXPECT_THAT(problem("I would rather not."), HasSubstr("I would rather not."));
  EXPECT_THAT(problem("No.\nI would\trather not."), EndsWith(": No. I would rather not."));
  EXPECT_THAT(problem(""), HasSubstr("no JSON object"));
  const std::string object = reply_with("7", "6");
  EXPECT_NE(problem(object.substr(0, object.size() - 1)), "");
  EXPECT_THAT(problem("[2J\x1b[2J"), HasSubstr("\\x1b"));
  EXPECT_THAT(problem(std::string(300U << 10, 'x')), HasSubstr("longer than 256 KiB"));
}

// Reading is bounded: neither endless braces nor deep nesting takes much time or stack.
TEST(Marks, HostileRepliesTakeNoTime) {
  const std::string object = reply_with("7", "6.5");
  std::string braces;
  for (int i = 0; i < 63; ++i) braces += "{ ";
  EXPECT_THAT(read(braces + object).marks, kSevenAndSix);
  EXPECT_THAT(problem("{ " + braces + object), HasSubstr("no JSON object"));
  EXPECT_THAT(problem(object + braces + reply_with("1", "1")), HasSubstr("too many braces"));
  const auto with_depth = [&](std::size_t depth) {
    return fmt::format("{}, \"x\": {}{}}}", object.substr(0, object.size() - 1),
                       std::string(depth, '['), std::string(depth, ']'));
  };
  EXPECT_THAT(read(with_depth(31)).marks, kSevenAndSix);
  EXPECT_NE(problem(with_depth(32)), "");
  const std::string brace(200U << 10, '{');
  EXPECT_NE(problem(brace), "");
  std::string nested;
  for (int i = 0; i < 20000; ++i) nested += "{\"a\":";
  EXPECT_NE(problem(nested + "1" + std::string(20000, '}')), "");
  EXPECT_NE(problem("{\"" + std::string(200U << 10, '\\')), "");
}

TEST(Marks, TheWholeIsTheWeightedMean) {
  EXPECT_DOUBLE_EQ(overall({{"design", 8, ""}, {"clarity", 4, ""}}, two_criteria()), 7);
}

}  // namespace
}  // namespace assay::judge
