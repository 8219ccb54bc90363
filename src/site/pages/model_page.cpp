// The page of one model, and the list of all models.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compare/showings.h"
#include "grade/grade.h"
#include "report/figures.h"
#include "site/frame.h"
#include "site/links.h"
#include "site/pages/charts.h"
#include "site/pages/overview_pages.h"
#include "site/pages/words.h"
#include "site/svg_chart.h"
#include "site/tables.h"

namespace assay::site {
namespace {

constexpr std::size_t kLongestReason = 300;

const report::Standing* standing_of(const DeviceView& d, const std::string& model) {
  const auto at = std::ranges::find(d.shown().models, model, &report::Standing::model);
  return at == d.shown().models.end() ? nullptr : &*at;
}

std::string summary_of(const DeviceView& d, const report::Standing& s) {
  std::string text = s.average ? fmt::format("{} points on average over {} of {} challenges",
                                             report::with_interval(*s.average, s.interval),
                                             s.attempted, d.shown().whole)
                               : "no whole challenge has a total";
  if (s.rank > 0) {
    const auto ranked = std::ranges::count_if(
        d.shown().models, [](const report::Standing& other) { return other.rank > 0; });
    text += fmt::format(", rank {}{} of {}", s.rank, s.tied ? "=" : "", ranked);
  } else if (s.reference) {
    text += "; a reference, which has no rank";
  } else if (s.average) {
    text += s.stale > 0 ? fmt::format(", not ranked by its average: {} of its results {} stale",
                                      s.stale, s.stale == 1 ? "is" : "are")
                        : ", not ranked by its average: others attempted more challenges";
  }
  return text + fmt::format(". The average is the {}.", compare::title(d.shown().by));
}

void add_attempt_links(Html& html, const std::string& path, const compare::Cell& c) {
  html.raw("<td class=why>");
  if (c.attempts.size() < 2) return;
  const char* before = "";
  for (const BoardRow* row : c.attempts) {
    const bool stale = std::ranges::find(c.stale, row) != c.stale.end();
    html.text(before).element(
        "a", {{"href", link(path, cell_page(row->key))}},
        fmt::format("{}: {}{}", row->key.attempt.empty() ? "unnumbered" : row->key.attempt,
                    report::grade_and_total(row->score), stale ? " (stale)" : ""));
    before = ", ";
  }
  if (c.count() > 1) {
    html.text(fmt::format("; mean {}, spread {}", report::points(c.mean.value),
                          report::points(c.spread())));
  }
}

void add_challenges(Html& html, const DeviceView& d, const report::Standing& s,
                    const std::string& path) {
  const ChartAxis axis = score_axis();
  const bool several = std::ranges::any_of(
      s.player->cells, [](const compare::Cell& c) { return c.attempts.size() > 1; });
  std::vector<Column> head{
      {"challenge", Column::Kind::text},     {"", Column::Kind::plain, strip_axis(axis)},
      {"best (95 %)", Column::Kind::number}, {"grade", Column::Kind::grade},
      {"verdict", Column::Kind::text},       {"correctness", Column::Kind::number},
      {"speed", Column::Kind::number},       {"main reason"}};
  if (several) head.push_back({"attempts"});
  begin_table(html, fmt::format("Challenges, {}", device_words(d.device)), head);
  for (std::size_t i = 0; i < s.player->cells.size(); ++i) {
    const compare::Cell& c = s.player->cells[i];
    const ChallengeSpec& spec = *d.shown().field.challenges[i];
    html.raw("<tr><th scope=row>");
    const std::string title = spec.title + (d.shown().field.is_partial(i) ? " (partial)" : "");
    if (c.best == nullptr) {
      html.text(title).raw("<td class=g><td class=n>no answer<td><td><td><td><td>");
      html.raw(several ? Literal("<td>\n") : Literal("\n"));
      continue;
    }
    const Score& score = c.best->score;
    html.element("a", {{"href", link(path, cell_page(c.best->key))}}, title);
    std::vector<Mark> marks;
    for (const BoardRow* row : c.graded) {
      if (row != c.best)
        marks.push_back(
            {Mark::Shape::ring, *row->score.total, 0, 5, "attempt " + row->key.attempt});
    }
    if (score.total) {
      marks.push_back({Mark::Shape::range, score.interval.low, score.interval.high, 0});
      marks.push_back({Mark::Shape::dot, *score.total, 0, 0});
    }
    html.raw("<td class=g>").add(strip(axis, marks));
    number_cell(html, report::total(score) + d.shown().field.currency_mark(i, *c.best));
    html.raw("<td>").element("span", {{"class", grade_class(score)}}, score.letter);
    html.raw("<td>").element("span", {{"class", verdict_class(score.verdict)}},
                             report::short_verdict(score.verdict));
    number_cell(html, correctness_text(score));
    number_cell(html, report::speed_against_par(score));
    reason_cell(html, clipped(c.best->reason, kLongestReason));
    if (several) add_attempt_links(html, path, c);
    html.raw("\n");
  }
  end_table(html);
}

// Strengths above, weaknesses below.
void add_showings(Html& html, const DeviceView& d, const compare::Player& player) {
  const auto all = d.showings.of(d.shown().field, player);
  if (all.empty()) return;
  html.raw(
      "<section><h3>Strengths and weaknesses</h3><p class=note>Each challenge by how far the "
      "model (dot) stands above the median of the others (tick).</p>");
  const ChartAxis axis = score_axis();
  begin_table(html, "Strengths and weaknesses",
              {{"challenge", Column::Kind::text},
               {"", Column::Kind::plain, strip_axis(axis)},
               {"score", Column::Kind::number},
               {"others", Column::Kind::number},
               {"lead", Column::Kind::number},
               {"place", Column::Kind::right}});
  for (const compare::Showing& s : all) {
    const std::vector<Mark> marks{{Mark::Shape::tick, s.others, 0, 7},
                                  {Mark::Shape::dot, s.score, 0, 0}};
    html.raw("<tr><th scope=row>").text(d.shown().field.challenges[s.challenge]->title);
    html.raw("<td class=g>").add(strip(axis, marks));
    number_cell(html, report::points(s.score));
    number_cell(html, report::points(s.others));
    number_cell(html, fmt::format("{:+.1f}", shown(s.lead()) + 0.0));
    number_cell(html, fmt::format("{} of {}", s.place, s.models));
    html.raw("\n");
  }
  end_table(html);
  html.raw("</section>\n");
}

// Points by dimension, one bar per challenge.
void add_points(Html& html, const DeviceView& d, const report::Standing& s,
                const std::string& path) {
  std::vector<DimensionRow> rows;
  for (std::size_t i = 0; i < s.player->cells.size(); ++i) {
    const BoardRow* best = s.player->cells[i].best;
    if (best == nullptr || best->score.dimensions.empty() || s.player->cells[i].is_stale())
      continue;
    DimensionRow row{d.shown().field.challenges[i]->title,
                     link(path, cell_page(best->key)),
                     "",
                     {},
                     best->score.total};
    for (const Dimension& dimension : best->score.dimensions)
      row.points.emplace_back(dimension.name, dimension.points);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return;
  html.raw("<section><h3>Points by dimension</h3>")
      .add(dimension_table("challenge", rows))
      .raw("</section>\n");
}

void add_speeds(Html& html, const DeviceView& d, const report::Standing& s,
                const std::string& path) {
  const compare::Reference reference = reference_of(d.device);
  std::vector<SpeedRow> speeds;
  std::vector<std::size_t> challenges;
  for (std::size_t i = 0; i < s.player->cells.size(); ++i) {
    const BoardRow* best = s.player->cells[i].best;
    if (best == nullptr || s.player->cells[i].is_stale()) continue;
    const auto speed = compare::speed_against(*best, reference);
    if (!speed) continue;
    SpeedRow row{*speed, std::nullopt};
    const auto naive = compare::speed_against(*best, compare::Reference::naive);
    if (naive && naive->value > 0) row.naive = speed->value / naive->value;
    speeds.push_back(row);
    challenges.push_back(i);
  }
  if (speeds.empty()) return;
  const ChartAxis axis = speed_axis(speeds);
  html.raw("<section><h3>Speed against ").text(compare::to_string(reference)).raw("</h3>");
  html.add(speed_legend(d.device));
  begin_table(html, "Speed",
              {{"challenge"},
               {"", Column::Kind::plain, strip_axis(axis, "x")},
               {"speed (95 %)", Column::Kind::number},
               {"times naive", Column::Kind::number}});
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    const BoardRow& best = *s.player->cells[challenges[i]].best;
    html.raw("<tr><th scope=row>")
        .element("a", {{"href", link(path, cell_page(best.key))}},
                 d.shown().field.challenges[challenges[i]]->title)
        .raw("<td class=g>")
        .add(speed_strip(axis, speeds[i]));
    number_cell(html, interval_text(speeds[i].speed, 3));
    number_cell(html, speeds[i].naive
                          ? fmt::format("{:.2f}", speeds[i].speed.value / *speeds[i].naive)
                          : "");
  }
  end_table(html);
  html.raw("</section>\n");
}

void add_failed(Html& html, const SiteView& v, const DeviceView& d, const report::Standing& s,
                const std::string& path) {
  Html rows;
  for (std::size_t i = 0; i < s.player->cells.size(); ++i) {
    const BoardRow* best = s.player->cells[i].best;
    if (best == nullptr) continue;
    const CellFacts& facts = v.facts_of(*best);
    if (facts.failed.empty()) continue;
    std::string names;
    for (const std::string& name : facts.failed) names += (names.empty() ? "" : ", ") + name;
    rows.raw("<tr><th scope=row>")
        .element("a", {{"href", link(path, cell_page(best->key))}},
                 d.shown().field.challenges[i]->title + d.shown().field.currency_mark(i, *best));
    number_cell(rows, facts.with_evidence
                          ? fmt::format("{} of {}", facts.failed.size(), facts.cases)
                          : std::to_string(facts.failed.size()));
    reason_cell(rows, clipped(names, kLongestReason));
  }
  if (rows.empty()) return;
  html.raw("<section><h3>Failed cases</h3>");
  begin_table(html, "Failed cases", {{"challenge"}, {"failed", Column::Kind::number}, {"cases"}});
  html.add(rows);
  end_table(html);
  html.raw("</section>\n");
}

}  // namespace

std::string model_document(const SiteView& v, const std::string& model) {
  const std::string path = model_page(model);
  Html main;
  const ModelInfo& about = v.about(model);
  main.raw("<h1>").text(model).raw("</h1>\n");
  if (!about.empty()) main.raw("<p>").text(report::model_facts(about)).raw("</p>\n");
  for (const DeviceView& d : v.devices) {
    const report::Standing* s = standing_of(d, model);
    if (s == nullptr) continue;
    main.raw("<section><h2>").text(device_words(d.device)).raw("</h2><p>");
    main.text(summary_of(d, *s)).raw("</p><p class=note>").text(device_note(d.device));
    main.raw("</p>\n");
    add_challenges(main, d, *s, path);
    add_showings(main, d, *s->player);
    add_points(main, d, *s, path);
    add_speeds(main, d, *s, path);
    add_failed(main, v, d, *s, path);
    main.raw("</section>\n");
  }
  main.add(pair_links(v, "Side by side", path, model));
  return document({path, model, {{"Rankings", kIndexPage}, {"Models", kModelsPage}}, true}, main);
}

std::string models_document(const SiteView& v) {
  std::map<std::string, std::vector<const report::Standing*>> models;
  for (std::size_t i = 0; i < v.devices.size(); ++i) {
    for (const report::Standing& s : v.devices[i].shown().models) {
      auto& row = models[s.model];
      row.resize(v.devices.size());
      row[i] = &s;
    }
  }
  Html main;
  main.raw(
      "<h1>Models</h1>\n<form class=filters hidden><label>Models <input type=search name=model "
      "placeholder=\"part of a name\"></label><output></output></form>\n");
  std::vector<Column> head{{"model", Column::Kind::text}, {"who"}};
  for (const DeviceView& d : v.devices) {
    head.push_back({device_words(d.device), Column::Kind::number});
    head.push_back({"challenges", Column::Kind::number});
  }
  begin_table(main, "Models", head);
  for (const auto& [model, row] : models) {
    main.open("tr", {{"data-m", model}}).raw("<th scope=row>");
    main.element("a", {{"href", link(kModelsPage, model_page(model))}}, model);
    cell(main, report::model_facts(v.about(model)));
    for (const report::Standing* s : row) {
      number_cell(main, s == nullptr || !s->average
                            ? "-"
                            : report::with_interval(*s->average, s->interval));
      number_cell(main, s == nullptr ? "" : std::to_string(s->attempted + s->partial));
    }
    main.raw("\n");
  }
  end_table(main);
  return document({kModelsPage, "Models", {{"Rankings", kIndexPage}}, true}, main);
}

}  // namespace assay::site
