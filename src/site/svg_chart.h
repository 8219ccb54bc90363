// Charts as SVG, drawn from numbers alone: axes, strips that stand in a row of a table, line
// charts. Everything that a strip shows stands beside it as a number too, so that it is hidden from
// screen readers; a line chart has a title, a description and a table of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "site/html.h"

namespace assay::site {

// From `low` to `high`, which are the first and last of `ticks`. These are evenly spread where the
// chart is, but for fine_log_axis.
struct ChartAxis {
  bool logarithmic = false;
  double low = 0, high = 1;
  std::vector<double> ticks;

  // Where a value lies, from 0 to 1; what lies beyond an end, or is no number, at that end.
  double place(double value) const;
  std::size_t steps() const { return ticks.size() - 1; }
};

// That spans the two: at most `most_steps` steps of 1, 2, 2.5 or 5 times a power of ten. Of two
// equal or unusable ends something that can be drawn.
ChartAxis linear_axis(double low, double high, int most_steps = 5);
// Whole powers of ten, at least one. REQUIRES nothing: what is not positive is left out of account.
ChartAxis log_axis(double low, double high, int most_steps = 6);
// Ticks at 1, 2 and 5 times powers of ten: for values that lie within a few of these. Only for
// dot_strip, which draws its own grid.
ChartAxis fine_log_axis(double low, double high);

// "0.5", "1000", "1e-7"
std::string tick_text(double value);

// One thing in a strip. `series` picks a colour.
struct Mark {
  enum class Shape : std::uint8_t { dot, ring, range, bar, tick };
  Shape shape = Shape::dot;
  double from = 0;
  double to = 0;  // of ranges and bars
  int series = 0;
  std::string title{};  // shown while a pointer rests on it
};

// As wide as there is room, of fixed height.
Html strip(const ChartAxis&, std::span<const Mark>);
// The axis, for the head of a column of strips. Numbers are shown times `scale`; `unit` stands
// behind the last one.
Html strip_axis(const ChartAxis&, std::string_view unit = "", double scale = 1);

// Of samples, each a dot, those that would lie on others above them, and a tick at their median.
// More than `most` are shown as that many quantiles.
inline constexpr std::size_t kMostDots = 40, kFewDots = 12;
Html dot_strip(const ChartAxis&, std::span<const double> samples, int series,
               std::size_t most = kMostDots);
// What dot_strip shows: `most` evenly spread quantiles, or all, sorted.
std::vector<double> shown_samples(std::span<const double> samples, std::size_t most = kMostDots);

// A line chart.
struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool stepped = false;  // holds each value until the next point
  int series = 0;        // colour and dashes
  std::string key{};     // what the page calls it elsewhere, for marking both at once
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
