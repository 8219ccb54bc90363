// The index and the other pages of the rankings.
#include <fmt/format.h>

#include <algorithm>

#include "compare/takeaways.h"
#include "compare/traps.h"
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

Shown page_of(const DeviceView& device, std::size_t page) {
  Shown shown{&device, {}, ranking_page(page)};
  const auto& models = device.shown().models;
  for (std::size_t i = (page - 1) * kModelsPerPage;
       i < std::min(models.size(), page * kModelsPerPage); ++i)
    shown.models.push_back(&models[i]);
  return shown;
}

std::string rank_text(const report::Standing& s) {
  if (s.reference) return "ref.";
  return s.rank == 0 ? "" : std::to_string(s.rank) + (s.tied ? "=" : "");
}

std::string average_text(const report::Standing& s) {
  if (!s.average && s.stale > 0) return "stale";
  return s.average ? report::with_interval(*s.average, s.interval) : report::kNotRun;
}

// Carries the row's place by each figure, for the script to sort by.
void begin_ranked_row(Html& html, const Shown& s, const std::string& model) {
  html.raw("<tr");
  for (std::size_t f = 0; f < kFigures.size(); ++f) {
    html.raw(" data-").text(compare::to_string(kFigures[f])).raw("=");
    html.text(std::to_string(s.view->place(f, model)));
  }
  if (s.view->standing(0, model).reference) html.raw(" data-ref");
  html.raw(" data-m=\"").text(model).raw("\"><td class=n>");
  by_figure(html, [&](std::size_t f) {
    return std::move(Html().text(rank_text(s.view->standing(f, model))));
  });
  html.raw("<th scope=row>").element("a", {{"href", link(s.path, model_page(model))}}, model);
}

Html score_strip(const ChartAxis& axis, const report::Standing& s) {
  std::vector<Mark> marks;
  if (s.average) {
    marks = {{Mark::Shape::range, s.interval.low, s.interval.high, 0},
             {Mark::Shape::dot, *s.average, 0, 0}};
  }
  return strip(axis, marks);
}

void add_ranking(Html& html, const Shown& s) {
  const ChartAxis axis = score_axis();
  begin_table(html, fmt::format("Ranking, {}", device_words(s.view->device)),
              {{"rank", Column::Kind::number},
               {"model", Column::Kind::text},
               {"", Column::Kind::plain, strip_axis(axis)},
               {"score (95 %)", Column::Kind::number},
               {"best", Column::Kind::number},
               {"first", Column::Kind::number},
               {"grade", Column::Kind::grade},
               {"challenges", Column::Kind::number},
               {"won, tied, lost", Column::Kind::right}},
              "ranking");
  for (const report::Standing* model : s.models) {
    const auto standing = [&](std::size_t f) -> const report::Standing& {
      return s.view->standing(f, model->model);
    };
    begin_ranked_row(html, s, model->model);
    html.raw("<td class=g>");
    by_figure(html, [&](std::size_t f) { return score_strip(axis, standing(f)); });
    html.raw("<td class=n>");
    by_figure(html,
              [&](std::size_t f) { return std::move(Html().text(average_text(standing(f)))); });
    number_cell(html, model->best ? report::points(*model->best) : "");
    number_cell(html, model->first ? report::points(*model->first) : "");
    html.raw("<td>");
    by_figure(html, [&](std::size_t f) {
      const report::Standing& at = standing(f);
      return std::move(Html().text(at.average ? letter(*at.average) : ""));
    });
    number_cell(html,
                fmt::format("{} of {}{}{}", model->attempted, s.view->shown().whole,
                            model->partial > 0 ? fmt::format(" + {} partial", model->partial) : "",
                            model->stale > 0 ? fmt::format(" + {} stale", model->stale) : ""));
    const compare::Record& r = model->record;
    number_cell(html, r.games() == 0 ? "" : fmt::format("{}, {}, {}", r.wins, r.ties, r.losses));
    html.raw("\n");
  }
  end_table(html);
}

std::string matrix_text(const compare::Cell& c, std::size_t figure) {
  const BoardRow& best = *c.best;
  if (c.is_stale()) return report::grade_and_total(best.score) + " (stale)";
  if (best.score.verdict == Verdict::no_answer) return "no answer";
  if (c.count() == 0) {
    return was_run(best.score.verdict) ? report::short_verdict(best.score.verdict) : "not run";
  }
  const double value = c.figure(kFigures[figure]).value;
  return fmt::format("{} {}", letter(value), report::points(value));
}

// The colour of the letter that stands there.
std::string matrix_class(const compare::Cell& c, std::size_t figure) {
  if (c.is_stale() || c.count() == 0) return grade_class(c.best->score);
  return grade_class(letter(c.figure(kFigures[figure]).value));
}

void add_matrix(Html& html, const Shown& s) {
  html.raw(
      "<h3>Every answer</h3><p class=note>Each leads to its page; of several attempts to the "
      "best one.</p>");
  std::vector<Column> head{{"model", Column::Kind::text}};
  for (std::size_t i = 0; i < s.field().challenges.size(); ++i) {
    const std::string name = s.field().challenges[i]->title;
    head.push_back({s.field().is_partial(i) ? name + " (partial)" : name, Column::Kind::number});
  }
  begin_table(html, fmt::format("Every answer, {}", device_words(s.view->device)), head, "matrix");
  for (const report::Standing* model : s.models) {
    begin_model_row(html, s, model->model);
    for (const compare::Cell& c : model->player->cells) {
      if (c.best == nullptr) {
        html.raw("<td class=none>-");
        continue;
      }
      html.raw("<td>").open("a", {{"href", link(s.path, cell_page(c.best->key))}});
      by_figure(html, [&](std::size_t f) {
        return std::move(
            Html().element("span", {{"class", matrix_class(c, f)}}, matrix_text(c, f)));
      });
      html.close("a");
    }
    html.raw("\n");
  }
  end_table(html);
}

void add_takeaways(Html& html, const DeviceView& d) {
  const auto traps = compare::trap_figures(d.shown().field);
  const auto all = compare::takeaways(d.shown().field, traps, d.shown().by);
  if (all.empty()) return;
  html.raw("<section><h3>What stands out</h3><ul>");
  for (const compare::Takeaway& t : all) html.raw("<li>").text(clipped(t.text, 600));
  html.raw("</ul></section>\n");
}

void add_device(Html& html, const DeviceView& d, std::size_t page) {
  const Shown s = page_of(d, page);
  if (s.models.empty()) return;
  html.open("section", {{"data-device", to_string(d.device)}})
      .raw("<h2>")
      .text(device_words(d.device))
      .raw("</h2><p class=note>")
      .text(device_note(d.device))
      .raw("</p>\n");
  add_ranking(html, s);
  html.raw(
      "<p class=note>A rank is one more than the number of models that are clearly better; = is "
      "a tie. Only models that attempted every whole challenge are ranked by their average: "
      "averages over different challenges do not compare. A stale answer, measured by other rules "
      "than today's, counts as not attempted. References (ref.) are samples, "
      "not models, and have no rank.</p>");
  add_matrix(html, s);
  if (page == 1) add_takeaways(html, d);
  html.add(dimension_chart(s))
      .add(speed_chart(s))
      .add(fast_p_chart(s))
      .add(pass_at_k_chart(s))
      .add(cost_chart(s))
      .raw("</section>\n");
}

// Hidden until the script shows them, because they do nothing without it.
void add_filters(Html& html, const SiteView& v, bool several_pages) {
  html.raw("<form class=filters hidden>");
  if (v.devices.size() > 1) {
    html.raw("<label>Device <select name=device><option value=\"\">all");
    for (const DeviceView& d : v.devices) {
      html.open("option", {{"value", to_string(d.device)}}).text(device_words(d.device));
    }
    html.raw("</select></label>");
  }
  html.raw(
      "<label>Models <input type=search name=model placeholder=\"part of a name\"></label>"
      "<label>Attempts <select name=figure>");
  for (const compare::By by : kFigures) {
    html.open("option", {{"value", compare::to_string(by)}}).text(compare::title(by));
  }
  html.raw("</select></label>");
  const bool references = std::ranges::any_of(v.devices, [](const DeviceView& d) {
    return std::ranges::any_of(d.shown().models, &report::Standing::reference);
  });
  if (references)
    html.raw("<label><input type=checkbox name=references checked> references</label>");
  html.raw("<output></output></form>\n");
  if (several_pages) html.raw("<p class=note>Filters are about the models of this page.</p>");
}

// On the device that has most, at least 1.
std::size_t most_models(const SiteView& v) {
  std::size_t most = 1;
  for (const DeviceView& d : v.devices) most = std::max(most, d.shown().models.size());
  return most;
}

void add_pages(Html& html, const SiteView& v, std::size_t page) {
  const std::size_t pages = ranking_pages(v);
  if (pages < 2) return;
  const std::size_t models = most_models(v);
  html.raw("<nav aria-label=Pages><ul class=attempts>");
  for (std::size_t i = 1; i <= pages; ++i) {
    const std::string name =
        fmt::format("{} to {}", (i - 1) * kModelsPerPage + 1, std::min(i * kModelsPerPage, models));
    if (i == page) {
      html.raw("<li aria-current=page>").text(name);
    } else {
      html.raw("<li>").element("a", {{"href", link(ranking_page(page), ranking_page(i))}}, name);
    }
  }
  html.raw("</ul></nav>\n");
}

void add_contents(Html& html, const SiteView& v, const std::string& path) {
  html.raw("<nav aria-label=Contents><p>")
      .element("a", {{"href", link(path, kModelsPage)}}, "All models by name");
  for (const DeviceView& d : v.devices) {
    html.raw("<p>").text(fmt::format("Challenges, {}: ", device_words(d.device)));
    const char* before = "";
    for (const ChallengeSpec* spec : d.shown().field.challenges) {
      html.text(before).element("a", {{"href", link(path, challenge_page(spec->name, d.device))}},
                                spec->title);
      before = ", ";
    }
  }
  html.raw("</nav>\n");
}

}  // namespace

std::size_t ranking_pages(const SiteView& v) {
  return (most_models(v) + kModelsPerPage - 1) / kModelsPerPage;
}

std::string ranking_document(const SiteView& v, std::size_t page) {
  const std::string path = ranking_page(page);
  const std::size_t pages = ranking_pages(v);
  Html main;
  main.raw("<h1>").text(page == 1 ? "Rankings" : fmt::format("Rankings, page {}", page));
  main.raw(
      "</h1>\n<p>Kernels written by language models, built, run in isolation, checked against "
      "fp64 references and timed between a plain and an expert implementation. 0 to 100 "
      "points; what was not run is not zero.</p>\n");
  if (v.devices.empty()) {
    main.raw("<p>Nothing has been measured yet: <code>assay run</code> measures.</p>");
  } else {
    if (!v.stale.empty()) main.raw("<p class=note>").prose(v.stale).raw("</p>\n");
    add_contents(main, v, path);
    add_filters(main, v, pages > 1);
  }
  add_pages(main, v, page);
  for (const DeviceView& d : v.devices) add_device(main, d, page);
  if (page == 1) main.add(pair_links(v, "Two models side by side", path));
  add_pages(main, v, page);
  Frame frame{path, "Rankings", {}, true};
  if (page > 1) frame.above = {{"Rankings", kIndexPage}};
  return document(frame, main);
}

}  // namespace assay::site
