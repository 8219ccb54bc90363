#include "records/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "support/error_of.h"

namespace assay {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing::error_of;

// The error when reading `key` of an object that holds only it.
std::string error_for(const json& value, const std::function<void(const StrictObject&)>& read) {
  const json j{{"k", value}};
  return error_of([&] { read(StrictObject(j, "/entries/3", {"k"})); });
}

TEST(StrictObject, HasTheKeysThatAreRequiredAndNoneThatAreUnknown) {
  const json j{{"a", 1}, {"b", 2}};
  EXPECT_FALSE(StrictObject(j, "/x", {"a", "b"}).has("c"));
  EXPECT_TRUE(StrictObject(j, "/x", {"a"}, {"b", "c"}).has("b"));
  EXPECT_EQ(error_of([&] { StrictObject(j, "/x", {"a", "c"}, {"b"}); }), "at /x: c is missing");
  EXPECT_EQ(error_of([&] { StrictObject(j, "/x", {"a"}); }), "at /x/b: unknown");
  EXPECT_EQ(error_of([] { StrictObject(json::array(), "", {}); }), "at /: expected an object");
}

TEST(StrictObject, ErrorsNameThePlaceWithin) {
  const json j{{"score", {{"total", "high"}}}};
  EXPECT_EQ(error_of([&] {
              StrictObject(j, "/entries/3", {"score"}).object("score", {"total"}).number("total");
            }),
            "at /entries/3/score/total: expected a number");
}

TEST(StrictObject, ValuesAreOfTheirTypeAndNoOther) {
  const auto text = [](const StrictObject& o) { o.text("k"); };
  const auto name = [](const StrictObject& o) { o.name("k"); };
  const auto flag = [](const StrictObject& o) { o.flag("k"); };
  const auto count = [](const StrictObject& o) { o.count("k"); };
  EXPECT_EQ(error_for("x", text), "no error");
  EXPECT_EQ(error_for(1, text), "at /entries/3/k: expected a string");
  EXPECT_EQ(error_for("", text), "no error");
  EXPECT_EQ(error_for("", name), "at /entries/3/k: may not be empty");
  EXPECT_EQ(error_for(true, flag), "no error");
  EXPECT_EQ(error_for(1, flag), "at /entries/3/k: expected true or false");
  EXPECT_EQ(error_for(0, count), "no error");
  for (const json& wrong : {json(-1), json(1.5), json("1"), json(nullptr)})
    EXPECT_EQ(error_for(wrong, count), "at /entries/3/k: expected a whole number, 0 or more");
}

TEST(StrictObject, NumbersMayBeNoneOrInfinite) {
  const json j{{"one", 1.5}, {"none", "nan"}, {"up", "inf"}, {"down", "-inf"}, {"absent", nullptr}};
  const StrictObject o(j, "", {"one", "none", "up", "down", "absent"});
  EXPECT_EQ(o.number("one"), 1.5);
  EXPECT_TRUE(std::isnan(o.number("none")));
  EXPECT_EQ(o.number("up"), HUGE_VAL);
  EXPECT_EQ(o.number("down"), -HUGE_VAL);
  EXPECT_EQ(o.number_or_null("absent"), std::nullopt);
  EXPECT_EQ(o.number_or_null("one"), 1.5);
  EXPECT_EQ(error_of([&] { o.number("absent"); }), "at /absent: expected a number");
}

TEST(StrictObject, ASeedIsAllOfItsDigitsAndOf64Bits) {
  const auto seed = [](const StrictObject& o) { o.seed("k"); };
  const json j{{"k", "18446744073709551615"}};
  EXPECT_EQ(StrictObject(j, "", {"k"}).seed("k"), 18446744073709551615u);
  for (const char* wrong : {"18446744073709551616", "-1", "7 ", "", "0x7"}) {
    EXPECT_EQ(error_for(wrong, seed),
              "at /entries/3/k: expected an unsigned 64-bit number as a string")
        << wrong;
  }
}

TEST(StrictObject, CodesAreThoseThatThisProgramWrites) {
  const json j{{"verdict", "WA"}, {"device", "sim"}};
  const StrictObject o(j, "", {"verdict", "device"});
  EXPECT_EQ(o.verdict("verdict"), Verdict::wrong_answer);
  EXPECT_EQ(o.device("device"), Device::sim);
  EXPECT_EQ(error_for("AC", [](const StrictObject& s) { s.verdict("k"); }),
            "at /entries/3/k: unknown verdict \"AC\"");
  EXPECT_EQ(error_for("tpu", [](const StrictObject& s) { s.device("k"); }),
            "at /entries/3/k: unknown device \"tpu\"");
}

TEST(StrictObject, AnIntervalHasTwoEnds) {
  const json j{{"k", {1, "inf"}}};
  const Interval i = StrictObject(j, "", {"k"}).interval("k");
  EXPECT_EQ(i.low, 1);
  EXPECT_EQ(i.high, HUGE_VAL);
  const auto read = [](const StrictObject& o) { o.interval("k"); };
  EXPECT_EQ(error_for({1}, read), "at /entries/3/k: expected two numbers");
  EXPECT_EQ(error_for({1, 2, 3}, read), "at /entries/3/k: expected two numbers");
  EXPECT_EQ(error_for({1, "x"}, read), "at /entries/3/k: expected two numbers");
  EXPECT_EQ(error_for(1, read), "at /entries/3/k: expected a list");
}

TEST(StrictObject, ElementsAreReadInOrderWithTheirPlaces) {
  const json j{{"k", {"a", "b"}}};
  std::vector<std::string> seen;
  StrictObject(j, "/x", {"k"}).each("k", [&](const json& element, const std::string& place) {
    seen.push_back(place + " " + element.get<std::string>());
  });
  EXPECT_THAT(seen, ElementsAre("/x/k/0 a", "/x/k/1 b"));
}

}  // namespace
}  // namespace assay
