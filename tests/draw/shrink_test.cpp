#include "draw/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::draw {
namespace {

using nlohmann::json;

const RandomSpace& space() {
  static const RandomSpace kSpace = [] {
    RandomSpace s;
    s.axes = {{.name = "kind", .choices = {"plain", "ties", "masked"}},
              {.name = "rows", .choices = {1, 2, 3, 8, 33, json{{"from", 0}, {"to", 500}}}},
              {.name = "width", .choices = {json{{"from", 1}, {"to", 100'000}}}}};
    return s;
  }();
  return kSpace;
}

const json kFound{{"kind", "masked"}, {"rows", 417}, {"width", 77'777}};

TEST(Shrink, LeavesWhatTheFailureNeeds) {
  const auto fails = [](const json& d) { return d.at("kind") != "plain" && d.at("width") >= 1000; };
  const json shrunk = shrink(space(), kFound, fails, 1000);
  EXPECT_EQ(shrunk.at("kind"), "ties");
  EXPECT_EQ(shrunk.at("rows"), 1);
  EXPECT_EQ(shrunk.at("width"), 1000) << "smaller and smaller steps end at the bound";
}

TEST(Shrink, GoesBackToAnAxisThatAnotherHeldUp) {
  // With many rows only ties fail; with few rows anything fails.
  const auto fails = [](const json& d) { return d.at("rows") <= 8 || d.at("kind") != "plain"; };
  EXPECT_EQ(shrink(space(), kFound, fails, 1000),
            (json{{"kind", "plain"}, {"rows", 1}, {"width", 1}}));
}

TEST(Shrink, KeepsADrawOfWhichNothingSimplerFails) {
  EXPECT_EQ(shrink(
                space(), kFound, [](const json&) { return false; }, 1000),
            kFound);
}

TEST(Shrink, ReturnsOnlyWhatWasSeenToFail) {
  json last = kFound;
  const auto fails = [&](const json& d) {
    const bool failed = d.at("rows").get<int>() % 3 == 0;
    if (failed) last = d;
    return failed;
  };
  EXPECT_EQ(shrink(space(), kFound, fails, 1000), last);
}

TEST(Shrink, AsksNoMoreThanItMay) {
  int asked = 0;
  const auto fails = [&](const json&) {
    ++asked;
    return asked % 2 == 0;
  };
  shrink(space(), kFound, fails, 7);
  EXPECT_LE(asked, 7);
}

TEST(Shrink, LeavesAloneWhatTheSpaceDoesNotName) {
  json found = kFound;
  found["failing_allocation"] = 5;
  EXPECT_EQ(shrink(
                space(), found, [](const json&) { return true; }, 1000)
                .at("failing_allocation"),
            5);
}

}  // namespace
}  // namespace assay::draw
