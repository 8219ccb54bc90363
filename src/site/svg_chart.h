// Charts as SVG, drawn from numbers alone: axes, strips for the rows of a table, line charts.
// Everything that a strip shows is also next to it as a number, so it is hidden from screen
// readers. A line chart has a title, a description and a table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "site/html.h"

namespace assay::site {

// From `low` to `high`, which are the first and last of `ticks`. Ticks are evenly spaced in the
// chart, except on a fine_log_axis.
struct ChartAxis {
  bool logarithmic = false;
  double low = 0, high = 1;
  std::vector<double> ticks;

  // Where a value lies, from 0 to 1. Values beyond an end, and NaN, are placed at an end.
  double place(double value) const;
  std::size_t steps() const { return ticks.size() - 1; }
};

// An axis that spans the two, with at most `most_steps` steps of 1, 2, 2.5 or 5 times a power of
// ten. If the ends are equal or unusable, some axis that can be drawn.
ChartAxis linear_axis(double low, double high, int most_steps = 5);
// Whole powers of ten, at least one step. Ends that are not positive are ignored.
ChartAxis log_axis(double low, double high, int most_steps = 6);
// Ticks at 1, 2 and 5 times powers of ten, for values within a few powers. Only for dot_strip,
// which draws its own grid.
ChartAxis fine_log_axis(double low, double high);

// "0.5", "1000", "1e-7"
std::string tick_text(double value);

// One mark in a strip. `series` picks a colour.
struct Mark {
  enum class Shape : std::uint8_t { dot, ring, range, bar, tick };
  Shape shape = Shape::dot;
  double from = 0;
  double to = 0;  // of ranges and bars
  int series = 0;
  std::string title{};  // tooltip
};

// As wide as the available space, of fixed height.
Html strip(const ChartAxis&, std::span<const Mark>);
// The axis, for the head of a column of strips. Numbers are shown times `scale`; `unit` follows the
// last one.
Html strip_axis(const ChartAxis&, std::string_view unit = "", double scale = 1);

// A dot for each sample, stacked where they would overlap, and a tick at their median. More than
// `most` samples are shown as `most` quantiles.
inline constexpr std::size_t kMostDots = 40, kFewDots = 12;
Html dot_strip(const ChartAxis&, std::span<const double> samples, int series,
               std::size_t most = kMostDots);
// What dot_strip shows: `most` evenly spaced quantiles, or all samples, sorted.
std::vector<double> shown_samples(std::span<const double> samples, std::size_t most = kMostDots);

// A line chart.
struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool stepped = false;  // holds each value until the next point
  int series = 0;        // colour and dashes
  std::string key{};     // its name elsewhere on the page, for marking both at once
  bool in_legend = true;
};
struct Point {
  double x = 0, y = 0;
  int series = 0;
  std::string label, title;
};
struct Plot {
  std::string id;  // unique on its page; letters, digits and '-'
  std::string title, description, x_label, y_label;
  ChartAxis x, y;
  std::vector<Line> lines;
  std::vector<Point> points;
};
// A <figure> with its caption and legend.
Html line_chart(const Plot&);

// A small square of a series' colour, for legends.
Html swatch(int series);

inline constexpr int kSeries = 8;

}  // namespace assay::site
