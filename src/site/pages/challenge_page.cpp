// The page of one challenge on one device: all answers, their speeds, errors and mistakes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "compare/traps.h"
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

constexpr std::size_t kLongestAnswerReason = 300;
// The most answers in a chart, the best of them, on a large board.
constexpr std::size_t kMostInCharts = 60;

struct Answer {
  const compare::Player* player;
  const compare::Cell* cell;
};

std::vector<Answer> answers_to(const compare::Field& field, std::size_t challenge) {
  std::vector<Answer> all;
  for (const compare::Player& p : field.players) {
    if (p.cells[challenge].best != nullptr) all.push_back({&p, &p.cells[challenge]});
  }
  std::ranges::stable_sort(all, [](const Answer& a, const Answer& b) {
    const auto key = [](const Answer& x) {
      return std::tuple(x.cell->is_stale(), !x.cell->best->score.total,
                        -x.cell->best->score.total.value_or(0));
    };
    return key(a) < key(b);
  });
  return all;
}

void begin_answer_row(Html& html, const std::string& path, const Answer& a) {
  html.open("tr", {{"data-m", a.player->model}})
      .raw("<th scope=row>")
      .element("a", {{"href", link(path, cell_page(a.cell->best->key))}}, a.player->model);
}

void add_answers(Html& html, const compare::Field& field, std::size_t challenge,
                 const std::vector<Answer>& answers, const std::string& path) {
  const ChartAxis axis = score_axis();
  const bool several =
      std::ranges::any_of(answers, [](const Answer& a) { return a.cell->count() > 1; });
  std::vector<Column> head{{"model", Column::Kind::text},
                           {"", Column::Kind::plain, strip_axis(axis)},
                           {"best (95 %)", Column::Kind::number}};
  if (several) head.push_back({"mean of attempts", Column::Kind::number});
  head.insert(head.end(), {{"grade", Column::Kind::grade},
                           {"verdict", Column::Kind::text},
                           {"correctness", Column::Kind::number},
                           {"speed", Column::Kind::number},
                           {"main reason"}});
  begin_table(html, "Answers", head);
  for (const Answer& a : answers) {
    const Score& s = a.cell->best->score;
    std::vector<Mark> marks;
    if (s.total) {
      marks = {{Mark::Shape::range, s.interval.low, s.interval.high, 0},
               {Mark::Shape::dot, *s.total, 0, 0}};
    }
    begin_answer_row(html, path, a);
    html.raw("<td class=g>").add(strip(axis, marks));
    number_cell(html, report::total(s) + field.currency_mark(challenge, *a.cell->best));
    if (several) {
      number_cell(
          html, a.cell->count() < 2
                    ? ""
                    : fmt::format("{} of {}", report::points(a.cell->mean.value), a.cell->count()));
    }
    html.raw("<td>").element("span", {{"class", grade_class(s)}}, s.letter);
    html.raw("<td>").element("span", {{"class", verdict_class(s.verdict)}},
                             report::short_verdict(s.verdict));
    number_cell(html, correctness_text(s));
    number_cell(html, report::speed_against_par(s));
    reason_cell(html, clipped(a.cell->best->reason, kLongestAnswerReason));
    html.raw("\n");
  }
  end_table(html);
}

void add_speeds(Html& html, Device device, const std::vector<Answer>& answers,
                const std::string& path) {
  std::vector<SpeedRow> speeds;
  std::vector<const Answer*> shown;
  for (const Answer& a : answers) {
    const auto speed = compare::speed_against(*a.cell->best, reference_of(device));
    if (!speed || shown.size() == kMostInCharts) continue;
    SpeedRow row{*speed, std::nullopt};
    const auto naive = compare::speed_against(*a.cell->best, compare::Reference::naive);
    if (naive && naive->value > 0) row.naive = speed->value / naive->value;
    speeds.push_back(row);
    shown.push_back(&a);
  }
  if (speeds.empty()) return;
  const ChartAxis axis = speed_axis(speeds);
  html.raw("<section><h2>Speed against ")
      .text(compare::to_string(reference_of(device)))
      .raw("</h2>")
      .add(speed_legend(device));
  begin_table(html, "Speed",
              {{"model", Column::Kind::text},
               {"", Column::Kind::plain, strip_axis(axis, "x")},
               {"speed (95 %)", Column::Kind::number},
               {"times naive", Column::Kind::number}});
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    begin_answer_row(html, path, *shown[i]);
    html.raw("<td class=g>").add(speed_strip(axis, speeds[i]));
    number_cell(html, interval_text(speeds[i].speed, 3));
    number_cell(html, speeds[i].naive
                          ? fmt::format("{:.2f}", speeds[i].speed.value / *speeds[i].naive)
                          : "");
    html.raw("\n");
  }
  end_table(html);
  html.raw("</section>\n");
}

void add_errors(Html& html, const SiteView& v, const std::vector<Answer>& answers,
                const std::string& path) {
  std::vector<std::pair<const Answer*, const CellFacts*>> shown;
  double low = 1, high = 1;
  for (const Answer& a : answers) {
    const CellFacts& facts = v.facts_of(*a.cell->best);
    if (!facts.worst_error || shown.size() == kMostInCharts) continue;
    shown.emplace_back(&a, &facts);
    if (*facts.median_error > 0) low = std::min(low, *facts.median_error);
    if (std::isfinite(*facts.worst_error)) high = std::max(high, *facts.worst_error);
  }
  if (shown.empty()) return;
  const ChartAxis axis = log_axis(std::max(low, 1e-9), std::min(high, 1e9));
  html.raw(
      "<section><h2>Error against the bound</h2><p class=note>Over all cases with a bound, on a "
      "log scale: the dot is the median, the bar reaches to the worst. The tick at 1 is all "
      "that is allowed.</p>");
  begin_table(html, "Error against the bound",
              {{"model", Column::Kind::text},
               {"", Column::Kind::plain, strip_axis(axis, "x")},
               {"median", Column::Kind::number},
               {"worst", Column::Kind::number}});
  for (const auto& [answer, facts] : shown) {
    const double middle = *facts->median_error, worst = *facts->worst_error;
    const int series = worst > 1 ? 1 : 0;
    const Mark marks[] = {{Mark::Shape::tick, 1, 0, 7},
                          {Mark::Shape::range, middle, worst, series},
                          {Mark::Shape::dot, middle, 0, series}};
    begin_answer_row(html, path, *answer);
    html.raw("<td class=g>").add(strip(axis, marks));
    number_cell(html, fmt::format("{:.2g}", middle));
    number_cell(html, fmt::format("{:.2g}", worst));
    html.raw("\n");
  }
  end_table(html);
  html.raw("</section>\n");
}

void add_learning(Html& html, const SiteView& v, const ChallengeSpec& spec,
                  const std::vector<Answer>& answers, const std::string& path) {
  std::vector<std::string> kinds;
  std::vector<const Answer*> shown;
  for (const Answer& a : answers) {
    const auto& all = v.facts_of(*a.cell->best).learned;
    if (all.empty() || shown.size() == kMostInCharts) continue;
    shown.push_back(&a);
    for (const Learned& l : all) {
      if (std::ranges::find(kinds, l.kind) == kinds.end()) kinds.push_back(l.kind);
    }
  }
  if (shown.empty()) return;
  const ChartAxis axis = linear_axis(0, 1);
  html.raw(
      "<section><h2>What the trainings learned</h2><p class=note>Loss on held-out text, as the "
      "share of the way from a model that counts pairs (0) to the least possible (1). Each "
      "training a ring; the dot is the median, the tick earns full points.</p><div class=charts>");
  for (const std::string& kind : kinds) {
    html.raw("<section><h3>").text(kind).raw("</h3>");
    begin_table(html, "Learned: " + kind,
                {{"model", Column::Kind::text},
                 {"", Column::Kind::plain, strip_axis(axis)},
                 {"median", Column::Kind::number}});
    for (const Answer* a : shown) {
      std::vector<Mark> marks;
      if (const auto full = asked_closure(spec, kind))
        marks.push_back({Mark::Shape::tick, *full, 0, 7});
      std::vector<double> values;
      for (const Learned& l : v.facts_of(*a->cell->best).learned) {
        if (l.kind != kind) continue;
        values.push_back(l.closure);
        marks.push_back({Mark::Shape::ring, l.closure, 0, 0,
                         fmt::format("{}: {:.3f}", l.case_name, l.closure)});
      }
      if (values.empty()) continue;
      marks.push_back({Mark::Shape::dot, middle_of(values), 0, 0});
      begin_answer_row(html, path, *a);
      html.raw("<td class=g>").add(strip(axis, marks));
      number_cell(html, fmt::format("{:.3f}", middle_of(values)));
      html.raw("\n");
    }
    end_table(html);
    html.raw("</section>\n");
  }
  html.raw("</div></section>\n");
}

void add_traps(Html& html, const compare::Field& field, const ChallengeSpec& spec) {
  Html rows;
  for (const compare::TrapFigure& t : compare::trap_figures(field)) {
    if (t.challenge != &spec || t.answers == 0) continue;
    rows.raw("<tr><td>").text(t.trap);
    cell(rows, t.catches);
    number_cell(rows, fmt::format("{} of {}", t.fallen, t.answers));
    number_cell(rows, fmt::format("{:.0f} % ({:.0f} to {:.0f})", 100 * t.share,
                                  100 * t.interval.low, 100 * t.interval.high));
    number_cell(rows, fmt::format("{:.2f}", t.separation));
    rows.raw("\n");
  }
  if (rows.empty()) return;
  html.raw(
      "<section><h2>Traps</h2><p class=note>How many answers fall for each, and how well it "
      "tells models apart: the mean difference between two of them.</p>");
  begin_table(html, "Traps",
              {{"trap", Column::Kind::text},
               {"catches"},
               {"fell", Column::Kind::number},
               {"share of models (95 %)", Column::Kind::number},
               {"separation", Column::Kind::number}});
  html.add(rows);
  end_table(html);
  html.raw("</section>\n");
}

// Says what the charts leave out.
void add_gaps(Html& html, const SiteView& v, std::size_t stale,
              const std::vector<Answer>& compared) {
  const auto without = std::ranges::count_if(
      compared, [&](const Answer& a) { return !v.facts_of(*a.cell->best).with_evidence; });
  if (stale > 0) {
    html.raw("<p class=note>")
        .text(fmt::format("Left out of charts and figures, for they are stale: {}.", stale));
  }
  if (without > 0) {
    html.raw("<p class=note>")
        .text(fmt::format("Errors and what was learned are not known of {} of {} answer{}, whose "
                          "evidence is not here; {} the command that makes it.",
                          without, compared.size(), compared.size() == 1 ? "" : "s",
                          without == 1 ? "its page has" : "their pages have"));
  }
}

}  // namespace

std::string challenge_document(const SiteView& v, const DeviceView& d, std::size_t challenge) {
  const compare::Field& field = d.shown().field;
  const ChallengeSpec& spec = *field.challenges[challenge];
  const std::string path = challenge_page(spec.name, d.device);
  const std::vector<Answer> answers = answers_to(field, challenge);
  const std::string title = fmt::format("{}, {}", spec.title, device_words(d.device));
  Html main;
  main.raw("<h1>").text(title).raw("</h1>\n<p>").text(spec.summary).raw("</p><p class=note>");
  main.text(device_note(d.device)).raw("</p>\n");
  if (field.is_partial(challenge)) {
    main.raw("<p class=note>Partial: what cannot be graded on this device is worth ")
        .text(fmt::format("{:.0f} of 100 points:", field.gaps[challenge].points));
    const char* before = " ";
    for (const std::string& missing : field.gaps[challenge].missing) {
      main.text(before).text(missing);
      before = ", ";
    }
    main.raw(". It enters no average with whole challenges.</p>\n");
  }
  if (answers.empty()) {
    main.raw("<p>No answer has been measured.</p>");
  } else {
    main.raw(
        "<form class=filters hidden><label>Models <input type=search name=model "
        "placeholder=\"part of a name\"></label><output></output></form>\n");
    add_answers(main, field, challenge, answers, path);
    std::vector<Answer> compared;  // stale answers appear in no chart beside others
    std::ranges::copy_if(answers, std::back_inserter(compared),
                         [](const Answer& a) { return !a.cell->is_stale(); });
    add_speeds(main, d.device, compared, path);
    add_errors(main, v, compared, path);
    add_learning(main, v, spec, compared, path);
    add_traps(main, field, spec);
    if (compared.size() > kMostInCharts) {
      main.raw("<p class=note>")
          .text(fmt::format("Charts show the best {} of {}.", kMostInCharts, compared.size()));
    }
    add_gaps(main, v, answers.size() - compared.size(), compared);
  }
  return document({path, title, {{"Rankings", kIndexPage}}, true}, main);
}

}  // namespace assay::site
