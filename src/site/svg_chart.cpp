#include "site/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "measure/statistics.h"

namespace assay::site {
namespace {

// At most `most` decimals, without trailing zeros.
std::string decimals(double value, int most) {
  std::string text = fmt::format("{:.{}f}", value, most);
  if (text.find('.') != std::string::npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string percent(double share) { return decimals(100 * share, 1) + "%"; }
std::string px(double value) { return decimals(value, 1); }

int series_of(int series) { return std::clamp(series, 0, kSeries - 1); }

void spread(ChartAxis& axis, double step) {
  const auto n = static_cast<int>(std::lround((axis.high - axis.low) / step));
  for (int i = 0; i <= n; ++i) axis.ticks.push_back(axis.low + step * i);
}

void add_title(Html& html, const std::string& title) {
  if (!title.empty()) html.element("title", {}, title);
}

// Attributes are unquoted, and left out if the style sheet sets them by class, because there are
// many marks.
void add_mark(Html& html, const ChartAxis& axis, const Mark& m) {
  const double at = axis.place(m.from);
  const std::string series = std::to_string(series_of(m.series));
  const bool circle = m.shape == Mark::Shape::dot || m.shape == Mark::Shape::ring;
  switch (m.shape) {
    case Mark::Shape::dot:
      html.raw("<circle class=d").text(series).raw(" cx=").text(percent(at));
      break;
    case Mark::Shape::ring:
      html.raw("<circle class=o").text(series).raw(" cx=").text(percent(at));
      break;
    case Mark::Shape::tick:
      html.raw("<rect class=t").text(series).raw(" x=").text(percent(at));
      break;
    case Mark::Shape::range:
    case Mark::Shape::bar:
      html.raw(m.shape == Mark::Shape::bar ? Literal("<rect class=b") : Literal("<rect class=r"));
      html.text(series).raw(" x=").text(percent(at)).raw(" width=");
      html.text(percent(std::max(axis.place(m.to) - at, 0.0)));
      break;
  }
  if (m.title.empty()) {
    html.raw(" />");
    return;
  }
  html.raw(">");
  add_title(html, m.title);
  html.raw(circle ? Literal("</circle>") : Literal("</rect>"));
}

// --- line charts -----------------------------------------------------------------------------

constexpr double kWidth = 480, kHeight = 300, kLeft = 52, kRight = 14, kTop = 10, kBottom = 46;

double plot_x(const Plot& p, double v) { return kLeft + p.x.place(v) * (kWidth - kLeft - kRight); }
double plot_y(const Plot& p, double v) {
  return kHeight - kBottom - p.y.place(v) * (kHeight - kTop - kBottom);
}

void add_grid(Html& html, const Plot& p) {
  std::string lines;
  for (const double t : p.x.ticks)
    lines += fmt::format("M{} {}V{}", px(plot_x(p, t)), px(kTop), px(kHeight - kBottom));
  for (const double t : p.y.ticks)
    lines += fmt::format("M{} {}H{}", px(kLeft), px(plot_y(p, t)), px(kWidth - kRight));
  html.open("path", {{"class", "grid"}, {"d", lines}}).close("path");
  for (const double t : p.x.ticks) {
    html.element("text",
                 {{"x", px(plot_x(p, t))}, {"y", px(kHeight - kBottom + 17)}, {"class", "m"}},
                 tick_text(t));
  }
  for (const double t : p.y.ticks) {
    html.element("text", {{"x", px(kLeft - 7)}, {"y", px(plot_y(p, t) + 4)}, {"class", "e"}},
                 tick_text(t));
  }
  const double middle = (kLeft + kWidth - kRight) / 2;
  html.element("text", {{"x", px(middle)}, {"y", px(kHeight - 8)}, {"class", "m"}}, p.x_label);
  const double centre = (kTop + kHeight - kBottom) / 2;
  html.element("text",
               {{"x", "14"},
                {"y", px(centre)},
                {"class", "m"},
                {"transform", fmt::format("rotate(-90 14 {})", px(centre))}},
               p.y_label);
}

std::string path_of(const Plot& p, const Line& line) {
  std::string d;
  double before = 0;
  for (const auto& [x, y] : line.points) {
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const double at = plot_y(p, y);
    if (d.empty()) {
      d = fmt::format("M{} {}", px(plot_x(p, x)), px(at));
    } else if (line.stepped) {
      d += fmt::format("H{}", px(plot_x(p, x)));
      if (at != before) d += fmt::format("V{}", px(at));
    } else {
      d += fmt::format("L{} {}", px(plot_x(p, x)), px(at));
    }
    before = at;
  }
  return d;
}

void add_legend(Html& html, const Plot& p) {
  const auto listed = [](const Line& line) { return line.in_legend; };
  if (std::ranges::count_if(p.lines, listed) < 2) return;
  html.raw("<ul class=legend>");
  for (const Line& line : p.lines) {
    if (!line.in_legend) continue;
    html.open("li", {{"data-m", line.key}})
        .raw("<svg class=sw width=26 height=10 aria-hidden=true>")
        .open("path", {{"class", fmt::format("l{}", series_of(line.series))}, {"d", "M0 5H26"}})
        .raw("</path></svg>")
        .text(line.name)
        .raw("</li>");
  }
  html.raw("</ul>");
}

}  // namespace

double ChartAxis::place(double value) const {
  if (std::isnan(value)) return 0;
  double at = 0;
  if (logarithmic) {
    at = value <= 0 ? 0
                    : (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low));
  } else {
    at = (value - low) / (high - low);
  }
  return std::clamp(at, 0.0, 1.0);
}

ChartAxis linear_axis(double low, double high, int most_steps) {
  if (!std::isfinite(low) || !std::isfinite(high)) low = 0, high = 1;
  if (low > high) std::swap(low, high);
  if (high - low < 1e-12 * std::max({std::abs(low), std::abs(high), 1e-300}))
    high = low + std::max(1.0, std::abs(low));
  const double least = (high - low) / most_steps;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  // Rounding outwards may add a step: take the first size that needs at most `most_steps`.
  ChartAxis axis;
  for (const double times : {1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 50.0}) {
    const double step = times * power;
    axis.low = step * std::floor(low / step + 1e-9);
    axis.high = step * std::ceil(high / step - 1e-9);
    if (std::lround((axis.high - axis.low) / step) > most_steps) continue;
    spread(axis, step);
    return axis;
  }
  axis.ticks = {axis.low, axis.high};
  return axis;
}

ChartAxis log_axis(double low, double high, int most_steps) {
  constexpr double kLeast = 1e-300;
  if (!std::isfinite(low) || low < kLeast) low = kLeast;
  if (!std::isfinite(high) || high < kLeast) high = std::max(low, 1.0);
  if (low == kLeast) low = std::min(high, 1.0);
  if (low > high) std::swap(low, high);
  auto first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  auto last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  if (last <= first) last = first + 1;
  const int step = (last - first + most_steps - 1) / most_steps;
  last = first + step * ((last - first + step - 1) / step);
  ChartAxis axis{true, std::pow(10.0, first), std::pow(10.0, last), {}};
  for (int e = first; e <= last; e += step) axis.ticks.push_back(std::pow(10.0, e));
  return axis;
}

ChartAxis fine_log_axis(double low, double high) {
  const ChartAxis decades = log_axis(low, high, 100);
  ChartAxis axis = decades;
  axis.ticks.clear();
  for (const double power : decades.ticks) {
    for (const double times : {1.0, 2.0, 5.0}) axis.ticks.push_back(times * power);
  }
  // Keeps the narrowest pair of ticks that spans the values.
  while (axis.ticks.size() > 2 && axis.ticks[1] <= low) axis.ticks.erase(axis.ticks.begin());
  while (axis.ticks.size() > 2 && axis.ticks[axis.ticks.size() - 2] >= high) axis.ticks.pop_back();
  if (axis.ticks.size() > 8) return decades;
  axis.low = axis.ticks.front();
  axis.high = axis.ticks.back();
  return axis;
}

std::string tick_text(double value) {
  if (value == 0 || std::abs(value) < 1e-300) return "0";
  const double size = std::abs(value);
  if (size >= 1e-3 && size < 1e5) return decimals(value, 6);
  const auto exponent = static_cast<int>(std::floor(std::log10(size) + 1e-9));
  return fmt::format("{}e{}", decimals(value / std::pow(10.0, exponent), 2), exponent);
}

Html strip(const ChartAxis& axis, std::span<const Mark> marks) {
  Html html;
  html.raw("<svg class=k").text(std::to_string(axis.steps())).raw(" aria-hidden=true>");
  for (const Mark& m : marks) add_mark(html, axis, m);
  html.raw("</svg>");
  return html;
}

Html strip_axis(const ChartAxis& axis, std::string_view unit, double scale) {
  Html html;
  html.raw("<svg class=axis aria-hidden=true>");
  for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
    const bool last = i + 1 == axis.ticks.size();
    const double at = axis.place(axis.ticks[i]);
    // Skips a tick too near the last one, whose text ends at its tick.
    if (!last && i > 0 && at > (unit.empty() ? 0.9 : 0.8)) continue;
    html.raw("<text x=").text(percent(at)).raw(" class=");
    html.raw(i == 0 ? Literal("a>") : last ? Literal("e>") : Literal("m>"));
    html.text(tick_text(scale * axis.ticks[i]) + (last ? std::string(unit) : "")).raw("</text>");
  }
  html.raw("</svg>");
  return html;
}

std::vector<double> shown_samples(std::span<const double> samples, std::size_t most) {
  std::vector<double> sorted;
  for (const double s : samples) {
    if (!std::isnan(s)) sorted.push_back(s);
  }
  std::ranges::sort(sorted);
  if (sorted.size() <= most) return sorted;
  std::vector<double> shown;
  for (std::size_t i = 0; i < most; ++i)
    shown.push_back(quantile(sorted, (static_cast<double>(i) + 0.5) / static_cast<double>(most)));
  return shown;
}

Html dot_strip(const ChartAxis& axis, std::span<const double> samples, int series,
               std::size_t most) {
  constexpr int kSpan = 300, kWidth = 2, kBase = 19, kRise = 3, kHighest = 5;
  const auto at = [&](double value) {
    return static_cast<int>(std::lround(axis.place(value) * kSpan));
  };
  std::string grid, dots;
  for (const double t : axis.ticks) grid += fmt::format("M{} 0v22", at(t));
  // Zero-length segments with round ends: dots that keep their shape however wide the strip is.
  std::map<int, int> heights;
  int x = 0, y = 0;
  for (const double s : shown_samples(samples, most)) {
    const int column = at(s) / kWidth * kWidth + kWidth / 2;
    const int row = kBase - kRise * std::min(heights[column]++, kHighest);
    dots += fmt::format("m{}{}{}h0", column - x, row < y ? "" : " ", row - y);
    x = column;
    y = row;
  }
  const std::string number = std::to_string(series_of(series));
  Html html;
  html.raw(
          "<svg class=k viewBox=\"0 0 300 22\" preserveAspectRatio=none aria-hidden=true>"
          "<path class=grid d=\"")
      .text(grid)
      .raw("\" />");
  if (const auto sorted = shown_samples(samples, samples.size()); !sorted.empty()) {
    html.raw("<path class=q").text(number).raw(" d=\"");
    html.text(fmt::format("M{} 2v18", at(median(sorted)))).raw("\" />");
  }
  html.raw("<path class=p").text(number).raw(" d=\"").text(dots).raw("\" /></svg>");
  return html;
}

Html line_chart(const Plot& p) {
  Html html;
  html.raw("<figure>")
      .open("svg", {{"class", "plot"},
                    {"viewBox", fmt::format("0 0 {} {}", px(kWidth), px(kHeight))},
                    {"role", "img"},
                    {"aria-labelledby", fmt::format("{0}-t {0}-d", p.id)}})
      .element("title", {{"id", p.id + "-t"}}, p.title)
      .element("desc", {{"id", p.id + "-d"}}, p.description);
  add_grid(html, p);
  for (const Line& line : p.lines) {
    html.open("path", {{"class", fmt::format("l{}", series_of(line.series))},
                       {"data-m", line.key},
                       {"d", path_of(p, line)}});
    add_title(html, line.name);
    html.close("path");
  }
  for (const Point& point : p.points) {
    const double x = plot_x(p, point.x), y = plot_y(p, point.y);
    html.open("circle", {{"class", fmt::format("d{}", series_of(point.series))},
                         {"cx", px(x)},
                         {"cy", px(y)},
                         {"r", "4"}});
    add_title(html, point.title);
    html.close("circle").element("text", {{"x", px(x + 6)}, {"y", px(y - 6)}}, point.label);
  }
  html.close("svg");
  html.raw("<figcaption><strong>").text(p.title).raw("</strong> ").text(p.description);
  html.raw("</figcaption>");
  add_legend(html, p);
  return html.close("figure"), html;
}

Html swatch(int series) {
  Html html;
  html.raw("<svg class=sw width=10 height=10 aria-hidden=true><rect class=w")
      .text(std::to_string(series_of(series)))
      .raw(" width=10 height=10 /></svg>");
  return html;
}

}  // namespace assay::site
