#include "site/pages/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compare/effort.h"
#include "compare/pass_at_k.h"
#include "report/figures.h"
#include "site/links.h"
#include "site/pages/words.h"
#include "site/tables.h"

namespace assay::site {
namespace {

using compare::Reference;

constexpr std::size_t kLines = kSeries;  // of a line chart

std::vector<double> shown_p(Device device) {
  return device == Device::sim ? std::vector<double>{0.01, 0.1, 0.5}
                               : std::vector<double>{0.5, 1, 2};
}

std::string percent_text(double share, const std::optional<Interval>& i) {
  if (!i) return fmt::format("{:.0f} %", 100 * share);
  return fmt::format("{:.0f} % ({:.0f} to {:.0f})", 100 * share, 100 * i->low, 100 * i->high);
}

// The mean points of each dimension over the whole challenges with a total, best attempts.
std::vector<std::pair<std::string, double>> mean_points(const compare::Field& field,
                                                        const compare::Player& player,
                                                        std::size_t& challenges) {
  std::vector<std::pair<std::string, double>> sums;
  challenges = 0;
  for (std::size_t i = 0; i < player.cells.size(); ++i) {
    const BoardRow* best = player.cells[i].best;
    if (player.cells[i].count() == 0 || field.is_partial(i)) continue;
    ++challenges;
    for (const Dimension& d : best->score.dimensions) {
      const auto at = std::ranges::find(sums, d.name, &std::pair<std::string, double>::first);
      if (at == sums.end()) {
        sums.emplace_back(d.name, d.points.value_or(0));
      } else {
        at->second += d.points.value_or(0);
      }
    }
  }
  for (auto& [name, sum] : sums) sum /= static_cast<double>(std::max<std::size_t>(challenges, 1));
  std::ranges::stable_sort(sums, {}, [](const auto& s) { return dimension_series(s.first); });
  return sums;
}

std::size_t most_attempts(const compare::Player& player) {
  std::size_t most = 0;
  for (const compare::Cell& c : player.cells) most = std::max(most, c.count());
  return most;
}

// A chart and, next to it, its numbers.
Html section_of(Literal title, const Plot& plot, std::string_view label,
                const std::vector<Column>& head, const Html& rows) {
  Html html;
  html.raw("<section><h3>").raw(title).raw("</h3><div class=charts>");
  html.add(line_chart(plot)).raw("<div>");
  begin_table(html, label, head);
  html.add(rows);
  end_table(html);
  html.raw("</div></div></section>\n");
  return html;
}

}  // namespace

void by_figure(Html& html, const std::function<Html(std::size_t)>& part) {
  std::vector<Html> parts;
  for (std::size_t i = 0; i < kFigures.size(); ++i) parts.push_back(part(i));
  if (std::ranges::all_of(parts, [&](const Html& p) { return p.str() == parts[0].str(); })) {
    html.add(parts[0]);
    return;
  }
  for (std::size_t i = 0; i < kFigures.size(); ++i) {
    html.open("span", {{"class", std::string("f ") + compare::to_string(kFigures[i])}})
        .add(parts[i])
        .raw("</span>");
  }
}

void begin_model_row(Html& html, const Shown& s, const std::string& model) {
  html.open("tr", {{"data-m", model}})
      .raw("<th scope=row>")
      .element("a", {{"href", link(s.path, model_page(model))}}, model);
}

Reference reference_of(Device device) {
  return device == Device::sim ? Reference::floor : Reference::par;
}

std::string interval_text(const Estimate& e, int decimals) {
  const auto number = [&](double x) { return fmt::format("{:.{}f}", x, decimals); };
  if (number(e.interval.low) == number(e.interval.high)) return number(e.value);
  return fmt::format("{} ({} to {})", number(e.value), number(e.interval.low),
                     number(e.interval.high));
}

Html dimension_table(std::string_view first_column, const std::vector<DimensionRow>& rows) {
  std::vector<std::string> names;
  for (const DimensionRow& row : rows) {
    for (const auto& [name, points] : row.points) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  std::ranges::stable_sort(names, {}, &dimension_series);
  const ChartAxis axis = score_axis();
  std::vector<Column> head{{std::string(first_column), Column::Kind::text},
                           {"", Column::Kind::plain, strip_axis(axis)},
                           {"score", Column::Kind::number}};
  for (const std::string& name : names)
    head.push_back({name, Column::Kind::number, swatch(dimension_series(name))});
  Html html;
  begin_table(html, "Points by dimension", head, "points");
  for (const DimensionRow& row : rows) {
    std::vector<Mark> marks;
    double sum = 0;
    Html numbers;
    for (const std::string& name : names) {
      const auto at = std::ranges::find(row.points, name, &decltype(row.points)::value_type::first);
      if (at == row.points.end() || !at->second) {
        number_cell(numbers, at == row.points.end() ? "" : report::kNotRun);
        continue;
      }
      marks.push_back({Mark::Shape::bar, sum, sum + *at->second, dimension_series(name)});
      sum += *at->second;
      number_cell(numbers, report::points(*at->second));
    }
    if (row.total) marks.push_back({Mark::Shape::tick, *row.total, 0, 7});
    if (row.model.empty()) {
      html.raw("<tr>");
    } else {
      html.open("tr", {{"data-m", row.model}});
    }
    html.raw("<th scope=row>").element("a", {{"href", row.link}}, row.name);
    html.raw("<td class=g>").add(strip(axis, marks));
    number_cell(html, row.total ? report::points(*row.total) : report::kNotRun);
    html.add(numbers).raw("\n");
  }
  end_table(html);
  return html;
}

Html dimension_chart(const Shown& s) {
  std::vector<DimensionRow> rows;
  for (const report::Standing* model : s.models) {
    std::size_t challenges = 0;
    const auto points = mean_points(s.field(), *model->player, challenges);
    if (challenges == 0) continue;
    DimensionRow row{
        model->model, link(s.path, model_page(model->model)), model->model, {}, model->best};
    for (const auto& [name, mean] : points) row.points.emplace_back(name, mean);
    rows.push_back(std::move(row));
  }
  Html html;
  if (rows.empty()) return html;
  html.raw(
          "<section><h3>Points by dimension</h3><p class=note>Means over the whole challenges "
          "attempted, best attempts. The tick is the score, which a failed core case caps at "
          "59.</p>")
      .add(dimension_table("model", rows))
      .raw("</section>\n");
  return html;
}

ChartAxis speed_axis(std::span<const SpeedRow> rows) {
  double low = 1, high = 1;
  for (const SpeedRow& r : rows) {
    low = std::min({low, r.speed.interval.low, r.naive.value_or(low)});
    high = std::max({high, r.speed.interval.high, r.naive.value_or(high)});
  }
  return log_axis(std::max(low, 1e-6), std::min(high, 1e6));
}

Html speed_strip(const ChartAxis& axis, const SpeedRow& r) {
  std::vector<Mark> marks{{Mark::Shape::tick, 1, 0, 7}};
  if (r.naive) marks.push_back({Mark::Shape::ring, *r.naive, 0, 5, "naive"});
  marks.push_back({Mark::Shape::range, r.speed.interval.low, r.speed.interval.high, 0});
  marks.push_back({Mark::Shape::dot, r.speed.value, 0, 0, interval_text(r.speed, 3)});
  return strip(axis, marks);
}

Html speed_legend(Device device) {
  Html html;
  html.raw("<p class=note>");
  if (device == Device::sim) {
    html.raw(
        "Modelled, never measured; on a log scale. The tick at 1 is the floor, which no "
        "implementation can beat; the ring is the naive kernel.");
  } else {
    html.raw(
        "On a log scale, with the 95 % interval of the timings. The tick at 1 is par, an "
        "expert&#39;s implementation; the ring is the naive one.");
  }
  html.raw("</p>");
  return html;
}

Html speed_chart(const Shown& s) {
  std::vector<SpeedRow> speeds;
  std::vector<const report::Standing*> models;
  std::vector<std::size_t> answers;
  for (const report::Standing* model : s.models) {
    const auto speed = compare::mean_speed(*model->player, reference_of(s.view->device));
    if (!speed) continue;
    const auto naive = compare::mean_speed(*model->player, Reference::naive);
    SpeedRow row{speed->speed, std::nullopt};
    if (naive && naive->answers == speed->answers && naive->speed.value > 0)
      row.naive = speed->speed.value / naive->speed.value;
    speeds.push_back(row);
    models.push_back(model);
    answers.push_back(speed->answers);
  }
  Html html;
  if (speeds.empty()) return html;
  const ChartAxis axis = speed_axis(speeds);
  const char* reference = compare::to_string(reference_of(s.view->device));
  html.raw("<section><h3>").text(fmt::format("Speed against {}", reference)).raw("</h3>");
  html.add(speed_legend(s.view->device))
      .raw(
          "<p class=note>Geometric means over correct answers alone: who solves less may look "
          "faster.</p>");
  begin_table(html, "Speed",
              {{"model", Column::Kind::text},
               {"", Column::Kind::plain, strip_axis(axis, "x")},
               {fmt::format("speed, {} = 1 (95 %)", reference), Column::Kind::number},
               {"times naive", Column::Kind::number},
               {"correct answers", Column::Kind::number}});
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    begin_model_row(html, s, models[i]->model);
    html.raw("<td class=g>").add(speed_strip(axis, speeds[i]));
    number_cell(html, interval_text(speeds[i].speed, 3));
    number_cell(html, speeds[i].naive
                          ? fmt::format("{:.2f}", speeds[i].speed.value / *speeds[i].naive)
                          : "");
    number_cell(html, std::to_string(answers[i]));
    html.raw("\n");
  }
  end_table(html);
  html.raw("</section>\n");
  return html;
}

Html fast_p_chart(const Shown& s) {
  constexpr int kPoints = 61;
  const Reference reference = reference_of(s.view->device);
  const std::string name = compare::to_string(reference);
  Plot plot;
  plot.id = fmt::format("fast-p-{}", to_string(s.view->device));
  plot.title = "fast_p.";
  plot.description =
      fmt::format("Share of answers that are correct and more than p times as fast as {}{}.", name,
                  s.view->device == Device::sim ? ", by modelled speeds" : "");
  plot.x_label = fmt::format("p, times the speed of {}", name);
  plot.y_label = "share";
  plot.x = s.view->device == Device::sim ? log_axis(1e-3, 1) : log_axis(1e-2, 10);
  plot.y = linear_axis(0, 1);
  Html rows;
  for (const report::Standing* model : s.models) {
    if (!compare::fast_p(*model->player, s.view->device, reference, 1)) continue;
    begin_model_row(rows, s, model->model);
    for (const double p : shown_p(s.view->device)) {
      const auto rate = compare::fast_p(*model->player, s.view->device, reference, p);
      number_cell(rows, rate ? percent_text(rate->value, rate->interval) : "");
    }
    const auto naive = compare::fast_p(*model->player, s.view->device, Reference::naive, 1);
    number_cell(rows, naive ? percent_text(naive->value, naive->interval) : "");
    rows.raw("\n");
    if (plot.lines.size() >= kLines) continue;
    Line line{
        clipped(model->model, 40), {}, true, static_cast<int>(plot.lines.size()), model->model};
    for (int i = 0; i < kPoints; ++i) {
      const double share = static_cast<double>(i) / (kPoints - 1);
      const double p = std::pow(10.0, std::log10(plot.x.low) + share * (std::log10(plot.x.high) -
                                                                        std::log10(plot.x.low)));
      const auto rate = compare::fast_p(*model->player, s.view->device, reference, p);
      line.points.emplace_back(p, rate ? rate->value : 0);
    }
    plot.lines.push_back(std::move(line));
  }
  if (plot.lines.empty()) return {};
  std::vector<Column> head{{"model", Column::Kind::text}};
  for (const double p : shown_p(s.view->device))
    head.push_back({fmt::format("p = {:g}", p), Column::Kind::number});
  head.push_back({"faster than naive", Column::Kind::number});
  return section_of("Correct and fast", plot, "fast_p", head, rows);
}

Html pass_at_k_chart(const Shown& s) {
  std::size_t most = 0;
  for (const report::Standing* model : s.models)
    most = std::max(most, most_attempts(*model->player));
  if (most < 2) return {};
  const compare::Goal goal = compare::goal_from("correct");
  const std::size_t columns = std::min<std::size_t>(most, 10);
  Plot plot;
  plot.id = fmt::format("pass-at-k-{}", to_string(s.view->device));
  plot.title = "pass@k.";
  plot.description =
      "Chance that one of k attempts is correct, the unbiased estimate, over the challenges with "
      "k attempts or more.";
  plot.x_label = "k";
  plot.y_label = "share";
  plot.x = linear_axis(1, static_cast<double>(std::max<std::size_t>(columns, 2)),
                       static_cast<int>(std::max<std::size_t>(columns, 2)) - 1);
  plot.y = linear_axis(0, 1);
  Html rows;
  for (const report::Standing* model : s.models) {
    if (most_attempts(*model->player) < 2) continue;
    begin_model_row(rows, s, model->model);
    Line line{
        clipped(model->model, 40), {}, false, static_cast<int>(plot.lines.size()), model->model};
    for (std::size_t k = 1; k <= columns; ++k) {
      const auto rate = compare::pass_rate(*model->player, goal, k);
      number_cell(rows, rate ? fmt::format("{} of {}", percent_text(rate->value, rate->interval),
                                           rate->challenges)
                             : "");
      if (rate) line.points.emplace_back(static_cast<double>(k), rate->value);
    }
    rows.raw("\n");
    if (plot.lines.size() < kLines) plot.lines.push_back(std::move(line));
  }
  std::vector<Column> head{{"model", Column::Kind::text}};
  for (std::size_t k = 1; k <= columns; ++k)
    head.push_back({fmt::format("pass@{} (95 %) of challenges", k), Column::Kind::number});
  return section_of("Several attempts", plot, "pass@k", head, rows);
}

Html cost_chart(const Shown& s) {
  const compare::Goal goal = compare::goal_from("correct");
  Plot plot;
  plot.id = fmt::format("cost-{}", to_string(s.view->device));
  plot.title = "Cost and score.";
  plot.description =
      "Average score against what a model's attempts here cost, for each attempt. Up and to the "
      "left is better.";
  plot.x_label = "US dollars an attempt";
  plot.y_label = "score";
  plot.y = score_axis();
  double low = HUGE_VAL, high = 0;
  Html rows;
  for (const report::Standing* model : s.models) {
    const compare::Effort effort = compare::effort_of(*model->player, goal);
    if (!effort.cost_usd || *effort.cost_usd <= 0 || !model->average) continue;
    const double each = *effort.cost_usd / static_cast<double>(effort.attempts);
    low = std::min(low, each);
    high = std::max(high, each);
    const auto of_solved = effort.per_solved(effort.cost_usd);
    begin_model_row(rows, s, model->model);
    number_cell(rows, report::dollars(each));
    number_cell(rows, report::points(*model->average));
    number_cell(rows, std::to_string(effort.solved));
    number_cell(rows, of_solved ? report::dollars(*of_solved) : "");
    rows.raw("\n");
    const std::string name = clipped(model->model, 40);
    plot.points.push_back({each, *model->average, static_cast<int>(plot.points.size()),
                           plot.points.size() < kLines ? name : "",
                           fmt::format("{}: {} at {}", name, report::points(*model->average),
                                       report::dollars(each))});
  }
  if (plot.points.empty()) return {};
  plot.x = log_axis(low, high);
  return section_of("Cost and score", plot, "Cost and score",
                    {{"model", Column::Kind::text},
                     {"cost an attempt", Column::Kind::number},
                     {"score", Column::Kind::number},
                     {"solved", Column::Kind::number},
                     {"cost a solved challenge", Column::Kind::number}},
                    rows);
}

}  // namespace assay::site
