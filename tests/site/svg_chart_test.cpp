#include "site/svg_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace assay::site {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Axis, LinearTicksAreRoundNumbersThatSpanTheValues) {
  EXPECT_THAT(linear_axis(0, 100, 4).ticks, ElementsAre(0, 25, 50, 75, 100));
  EXPECT_THAT(linear_axis(0, 1).ticks, ElementsAre(0, 0.2, 0.4, DoubleEq(0.2 * 3), 0.8, 1));
  EXPECT_THAT(linear_axis(13, 87).ticks, ElementsAre(0, 20, 40, 60, 80, 100));
}

TEST(Axis, LogarithmicTicksAreWholePowersOfTen) {
  EXPECT_THAT(log_axis(0.02, 3).ticks, ElementsAre(DoubleEq(0.01), DoubleEq(0.1), 1, 10));
  EXPECT_THAT(log_axis(1, 10).ticks, ElementsAre(1, 10));
  EXPECT_THAT(log_axis(5, 5).ticks, ElementsAre(1, 10));
  EXPECT_LE(log_axis(1e-30, 1e30).steps(), 6U);
}

TEST(Axis, FineTicksStandAtOneTwoAndFive) {
  EXPECT_THAT(fine_log_axis(0.012, 0.07).ticks,
              ElementsAre(DoubleEq(0.01), DoubleEq(0.02), DoubleEq(0.05), DoubleEq(0.1)));
}

TEST(Axis, WhateverTheValuesAreThereIsSomethingToDraw) {
  const double odd[] = {0, -1, 1, 1e-320, 1e300, -1e300, 1e-9, kInf, -kInf, std::nan("")};
  for (const double low : odd) {
    for (const double high : odd) {
      for (const ChartAxis& axis :
           {linear_axis(low, high), log_axis(low, high), fine_log_axis(low, high)}) {
        ASSERT_GE(axis.ticks.size(), 2U) << low << ' ' << high;
        ASSERT_LT(axis.low, axis.high) << low << ' ' << high;
        for (const double value : odd) {
          const double at = axis.place(value);
          ASSERT_TRUE(at >= 0 && at <= 1) << value << " of " << low << ' ' << high;
        }
      }
    }
  }
}

TEST(Axis, PlacesAreOrdered) {
  std::mt19937 random(1);
  std::lognormal_distribution<> draw(0, 3);
  for (int i = 0; i < 200; ++i) {
    const double a = draw(random), b = a * (1 + draw(random));
    for (const ChartAxis& axis : {linear_axis(a, b), log_axis(a, b), fine_log_axis(a, b)}) {
      EXPECT_LE(axis.low, a * 1.000001);
      EXPECT_GE(axis.high, b * 0.999999);
      EXPECT_LE(axis.place(a), axis.place(b));
    }
  }
}

TEST(Ticks, AreShortTexts) {
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(0.1), "0.1");
  EXPECT_EQ(tick_text(1000), "1000");
  EXPECT_EQ(tick_text(1e-7), "1e-7");
  EXPECT_EQ(tick_text(2.5e6), "2.5e6");
  EXPECT_EQ(tick_text(-20), "-20");
}

TEST(Strip, MarksLieWhereTheirValuesAre) {
  const Mark marks[] = {{Mark::Shape::dot, 25, 0, 0}, {Mark::Shape::bar, 10, 60, 3}};
  const std::string svg = strip(linear_axis(0, 100, 4), marks).str();
  EXPECT_THAT(svg, HasSubstr("<circle class=d0 cx=25% />"));
  EXPECT_THAT(svg, HasSubstr("<rect class=b3 x=10% width=50% />"));
}

TEST(Strip, TitlesAreText) {
  const Mark marks[] = {{Mark::Shape::dot, 1, 0, 0, "</svg><script>"}};
  EXPECT_THAT(strip(linear_axis(0, 2), marks).str(), Not(HasSubstr("<script")));
}

TEST(Samples, ManyAreShownAsQuantiles) {
  std::vector<double> samples;
  for (int i = 0; i <= 1000; ++i) samples.push_back(i);
  EXPECT_THAT(shown_samples(samples, 4), ElementsAre(125, 375, 625, 875));
  EXPECT_THAT(shown_samples(std::vector<double>{3, 1, std::nan(""), 2}, 60), ElementsAre(1, 2, 3));
}

TEST(Samples, EachIsADot) {
  const std::string svg = dot_strip(fine_log_axis(1, 2), std::vector<double>{1, 1.2, 1.2}, 0).str();
  std::size_t dots = 0;
  for (std::size_t at = svg.find("h0"); at != svg.npos; at = svg.find("h0", at + 1)) ++dots;
  EXPECT_EQ(dots, 3U);
}

TEST(LineChart, HasATitleADescriptionAndNoMarkupOfItsNames) {
  Plot plot;
  plot.id = "p";
  plot.title = "Title";
  plot.description = "What it shows";
  plot.x = linear_axis(0, 1);
  plot.y = linear_axis(0, 1);
  plot.lines = {{"<b>one</b>", {{0, 0}, {1, 1}}, false, 0}, {"two", {{0, kInf}}, true, 1}};
  const std::string html = line_chart(plot).str();
  EXPECT_THAT(html, HasSubstr("<title id=\"p-t\">Title</title>"));
  EXPECT_THAT(html, HasSubstr("aria-labelledby=\"p-t p-d\""));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;one"));
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
  EXPECT_THAT(html, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace assay::site
