#include "site/pages/cell_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "grade/currency.h"
#include "records/lookup.h"
#include "report/code_facts.h"
#include "report/figures.h"
#include "report/terminal.h"
#include "site/frame.h"
#include "site/links.h"
#include "site/pages/words.h"
#include "site/svg_chart.h"
#include "site/tables.h"
#include "spec/spec.h"
#include "util/text.h"

namespace assay::site {
namespace {

constexpr std::size_t kLongestDetail = 600, kLongestLog = 20'000, kLongestRemark = 160,
                      kMostFailures = 24;

std::string path_of(const CellView& v) { return cell_page(v.row->key); }

std::string title_of(const CellView& v) {
  const CellKey& key = v.row->key;
  return fmt::format("{} on {}{}, {}", key.model, v.spec->title,
                     key.attempt.empty() ? "" : ", attempt " + key.attempt,
                     device_words(key.device));
}

// --- head ------------------------------------------------------------------------------------

void add_notes(Html& html, const CellView& v) {
  const Score& s = v.row->score;
  html.raw("<ul class=notes>");
  if (s.capped) html.raw("<li>At most 59 because a core case failed.");
  for (const Note& flag : s.flags) html.raw("<li>").text(clipped(flag.text, kLongestDetail));
  if (std::string note = currency_note(*v.row, v.yardstick); !note.empty()) {
    note.front() = static_cast<char>(std::toupper(note.front()));
    html.raw("<li>").prose(note).raw(".");
  }
  if (!s.modelled_on.empty()) {
    html.raw("<li>Ran on the simulated GPU: its speed is modelled as on ")
        .text(s.modelled_on)
        .raw(", never measured.");
  }
  if (!v.evidence) {
    html.raw(
            "<li>Only what the board knows is shown; cases, timings, counts and the build are "
            "left ")
        .raw("out, for the evidence is not here: ")
        .prose(clipped(v.evidence_problem, kLongestDetail))
        .raw(". <code>")
        .text(measuring_command(v.row->key))
        .raw("</code> measures the cell again, with evidence.");
  }
  html.raw("</ul>");
}

void add_head(Html& html, const CellView& v) {
  const BoardRow& row = *v.row;
  const Score& s = row.score;
  html.raw("<h1>").text(title_of(v)).raw("</h1>\n<p class=verdict>");
  if (s.total) {
    html.element("span", {{"class", grade_class(s)}}, s.letter)
        .raw(" <strong>")
        .text(report::total(s))
        .raw("</strong> points of 100 ");
  } else {
    html.raw("<span class=\"grade none\">")
        .text(s.verdict == Verdict::no_answer ? "no answer" : report::kNotRun)
        .raw("</span> ");
  }
  html.element("span", {{"class", verdict_class(s.verdict)}}, report::verdict(s.verdict))
      .raw("</p>\n<p class=reason>")
      .text(clipped(row.reason, kLongestDetail))
      .raw("</p>\n");
  add_notes(html, v);
  if (v.others.size() < 2) return;
  html.raw("<nav aria-label=Attempts><ul class=attempts>");
  for (const BoardRow* other : v.others) {
    const std::string name = fmt::format("{}{} {}", device_words(other->key.device),
                                         other->key.attempt.empty() ? "" : " " + other->key.attempt,
                                         report::grade_and_total(other->score));
    if (other == v.row) {
      html.raw("<li aria-current=page>").text(name);
    } else {
      html.raw("<li>").element("a", {{"href", link(path_of(v), cell_page(other->key))}}, name);
    }
  }
  html.raw("</ul></nav>\n");
}

void add_dimensions(Html& html, const Score& s) {
  if (s.dimensions.empty()) return;
  double most = 0;
  for (const Dimension& d : s.dimensions) most = std::max(most, d.max);
  const ChartAxis axis = linear_axis(0, most);
  html.raw("<section><h2>Points</h2>");
  begin_table(html, "Points by dimension",
              {{"dimension"},
               {"", Column::Kind::plain, strip_axis(axis)},
               {"points (95 %)", Column::Kind::right},
               {"of", Column::Kind::right},
               {"why"}});
  for (const Dimension& d : s.dimensions) {
    const int series = dimension_series(d.name);
    std::vector<Mark> marks{{Mark::Shape::tick, d.max, 0, 7}};
    if (d.points) {
      marks.insert(marks.begin(), {Mark::Shape::bar, 0, *d.points, series});
      if (d.interval.high - d.interval.low > axis.high / 200)
        marks.push_back({Mark::Shape::range, d.interval.low, d.interval.high, 7});
    }
    html.raw("<tr><th scope=row>").text(d.name).raw("<td class=g>").add(strip(axis, marks));
    number_cell(html, d.points ? report::with_interval(*d.points, d.interval) : report::kNotRun);
    number_cell(html, tenths(d.max));
    reason_cell(html, clipped(d.why, kLongestDetail));
  }
  end_table(html);
  html.raw("</section>\n");
}

// --- cases -----------------------------------------------------------------------------------

std::string error_text(const CaseResult& r) {
  if (!r.error || !r.bound) return "";
  std::string text = fmt::format("{:.3g}, allowed {:.3g}", *r.error, *r.bound);
  const double excess = *r.error / *r.bound;
  if (excess > 1 && std::isfinite(excess)) text += fmt::format(" ({:.3g} times)", excess);
  return text;
}

void add_term(Html& html, Literal name, std::string_view value) {
  if (!value.empty()) html.raw("<dt>").raw(name).raw("<dd>").text(value);
}

void add_failure(Html& html, const CellView& v, SourceLinks& links, const CaseResult& r) {
  const CaseSpec* c = find_case(*v.spec, r.name);
  html.raw("<li><h3>")
      .text(r.name)
      .raw(" <small>")
      .text(to_string(r.group))
      .raw("</small> ")
      .element("span", {{"class", verdict_class(r.verdict)}}, report::verdict(r.verdict))
      .raw("</h3><dl>");
  add_term(html, "catches", c == nullptr ? "" : c->catches);
  if (!r.detail.empty()) {
    html.raw("<dt>detail<dd>").add(links.linked(clipped(r.detail, kLongestDetail)));
  }
  add_term(html, "error", error_text(r));
  add_term(html, "shape", clipped(r.shape, kLongestDetail));
  html.raw("<dt>replay<dd><code>").text(replay_command(*v.evidence, r.name)).raw("</code></dl>\n");
}

// A submission that does not load fails every case in the same way, so report it once.
void add_failures(Html& html, const CellView& v, SourceLinks& links) {
  std::size_t failures = 0, unloadable = 0, shown = 0, run = 0;
  Html list;
  for (const CaseResult& r : v.evidence->cases) {
    if (was_run(r.verdict)) ++run;
    if (!is_failure(r) && r.verdict != Verdict::harness_error) continue;
    ++failures;
    if (r.verdict == Verdict::load_error && ++unloadable > 1) continue;
    if (++shown <= kMostFailures) add_failure(list, v, links, r);
  }
  if (failures == 0) return;
  html.raw("<section><h2>")
      .text(fmt::format("Failed cases: {} of {}", failures, run))
      .raw("</h2>\n<ol class=failures>")
      .add(list)
      .raw("</ol>");
  if (unloadable > 1) {
    html.raw("<p>").text(fmt::format("And {} more that {} not load.", unloadable - 1,
                                     unloadable == 2 ? "does" : "do"));
  }
  if (shown > kMostFailures) {
    html.raw("<p>").text(
        fmt::format("And {} more, which the table of cases lists.", shown - kMostFailures));
  }
  html.raw("</section>\n");
}

std::string short_number(const std::optional<double>& value) {
  return value ? fmt::format("{:.2e}", *value) : "";
}

void add_case_row(Html& html, const CaseResult& r) {
  html.raw("<tr><td>").text(r.name);
  if (r.verdict == Verdict::ok) {
    html.raw("<td>OK");
  } else {
    html.raw("<td>").element("span", {{"class", verdict_class(r.verdict)}}, code(r.verdict));
  }
  cell(html, short_number(r.error));
  cell(html, short_number(r.bound));
  cell(html, was_run(r.verdict) ? report::duration(r.seconds) : "");
  const bool explained = r.verdict != Verdict::ok && !r.detail.empty();
  cell(html, clipped(explained ? r.detail : r.shape, kLongestRemark));
  html.raw("\n");
}

void add_cases(Html& html, const CellView& v) {
  if (v.evidence->cases.empty()) return;
  html.raw("<section><h2>Every case</h2>\n");
  if (v.row->key.device == Device::sim) {
    html.raw("<p class=note>Times are of the simulator, and say nothing about speed.</p>");
  }
  begin_table(
      html, "Every case",
      {{"case"}, {"verdict"}, {"error"}, {"allowed"}, {"time"}, {"shape, or what was wrong"}},
      "cases");
  for (const CaseGroup group : {CaseGroup::core, CaseGroup::edge, CaseGroup::trap,
                                CaseGroup::completeness, CaseGroup::resource, CaseGroup::timed}) {
    std::size_t all = 0, good = 0;
    for (const CaseResult& r : v.evidence->cases) {
      if (r.group == group) ++all, good += r.verdict == Verdict::ok ? 1 : 0;
    }
    if (all == 0) continue;
    html.raw("<tbody><tr><th colspan=6 scope=rowgroup>")
        .text(fmt::format("{}: {} of {} passed", to_string(group), good, all));
    std::string passed;
    for (const CaseResult& r : v.evidence->cases) {
      if (r.group != group) continue;
      if (v.brief && r.verdict == Verdict::ok) {
        passed += (passed.empty() ? "" : ", ") + r.name;
      } else {
        add_case_row(html, r);
      }
    }
    if (!passed.empty()) html.raw("<tr><td colspan=6>Passed: ").text(passed);
  }
  end_table(html);
  html.raw("</section>\n");
}

void add_errors(Html& html, const CellView& v) {
  const std::vector<RelativeError> errors = relative_errors(*v.evidence);
  if (errors.empty()) return;
  double low = 1, high = 1;
  for (const RelativeError& e : errors) {
    if (e.ratio > 0) low = std::min(low, e.ratio);
    if (std::isfinite(e.ratio)) high = std::max(high, e.ratio);
  }
  const ChartAxis axis = log_axis(std::max(low, 1e-9), std::min(high, 1e9));
  html.raw(
      "<section><h2>Error against the bound</h2><p class=note>Each case a dot; at 1 the error "
      "is all that is allowed.</p>");
  begin_table(html, "Error against the bound",
              {{"cases"},
               {"", Column::Kind::plain, strip_axis(axis, " x bound")},
               {"median", Column::Kind::right},
               {"worst", Column::Kind::right},
               {"in"}});
  for (const CaseGroup group : {CaseGroup::core, CaseGroup::edge, CaseGroup::trap,
                                CaseGroup::completeness, CaseGroup::resource, CaseGroup::timed}) {
    std::vector<double> ratios;
    const RelativeError* worst = nullptr;
    for (const RelativeError& e : errors) {
      if (e.group != group) continue;
      ratios.push_back(e.ratio);
      if (worst == nullptr || e.ratio > worst->ratio) worst = &e;
    }
    if (worst == nullptr) continue;
    html.raw("<tr><th scope=row>").text(fmt::format("{} ({})", to_string(group), ratios.size()));
    html.raw("<td class=g>").add(dot_strip(axis, ratios, worst->ratio > 1 ? 1 : 0));
    number_cell(html, fmt::format("{:.2g}", middle_of(ratios)));
    number_cell(html, fmt::format("{:.2g}", worst->ratio));
    cell(html, worst->case_name);
  }
  end_table(html);
  html.raw("</section>\n");
}

void add_own_tests(Html& html, const CellView& v) {
  const CellResult& c = *v.evidence;
  if (c.mutants.empty() && !c.tests_note) return;
  html.raw("<section><h2>Its own tests</h2>");
  if (c.tests_note) html.raw("<p>").text(c.tests_note->text);
  std::string right;
  std::size_t count = 0, judged = 0;
  Html wrong;
  for (const Mutant& m : c.mutants) {
    if (m.verdict == TestVerdict::house_fault) {
      html.raw("<p><strong>A fault of the house:</strong> ")
          .text(clipped(m.reason, kLongestDetail));
      continue;
    }
    ++judged;
    if (m.judged_rightly()) {
      ++count;
      right += (right.empty() ? "" : ", ") + m.subject;
      continue;
    }
    wrong.raw("<tr><td>").text(m.subject);
    cell(wrong, m.correct ? "correct" : "wrong");
    cell(wrong, code(m.verdict));
    cell(wrong, clipped(m.reason, kLongestDetail));
  }
  if (!c.mutants.empty()) {
    html.raw("<p>").text(fmt::format("{} of {} implementations judged rightly{}{}.", count, judged,
                                     right.empty() ? "" : ": ", right));
  }
  if (!wrong.empty()) {
    begin_table(html, "Misjudged implementations",
                {{"implementation"}, {"is"}, {"was"}, {"its tests said"}});
    html.add(wrong);
    end_table(html);
  }
  html.raw("</section>\n");
}

void add_code(Html& html, const CellView& v, SourceLinks& links) {
  if (v.evidence->build.verdict == Verdict::no_answer) return;
  html.raw("<section><h2>Code, not scored</h2><dl>");
  for (const report::CodeFact& fact : report::code_facts(v.evidence->code)) {
    if (!fact.name.empty()) html.raw("<dt>").text(fact.name);
    html.raw("<dd>").add(links.linked(clipped(fact.text, kLongestDetail)));
  }
  html.raw("</dl></section>\n");
}

void add_build(Html& html, const CellView& v, SourceLinks& links) {
  const BuildRecord& b = v.evidence->build;
  if (b.command.empty() && b.log.empty()) return;
  html.raw("<section><h2>Build</h2><p>")
      .text(b.verdict == Verdict::ok ? "It compiles." : std::string(description(b.verdict)))
      .raw("<pre class=log tabindex=0>")
      .text(b.command)
      .raw("\n");
  if (!b.log.empty()) html.add(links.linked(clipped(b.log, kLongestLog)));
  html.raw("</pre></section>\n");
}

void add_provenance(Html& html, const CellView& v) {
  const BoardRow& row = *v.row;
  html.raw("<section><h2>Measured</h2><dl>");
  html.raw("<dt>replay<dd><code>")
      .text(fmt::format("{} --seed {}", rerun_command(row.key, row.target), row.seed))
      .raw("</code>");
  if (v.about != nullptr) add_term(html, "model", report::model_facts(*v.about));
  add_term(html, "attempt", report::attempt_facts(row.attempt));
  add_term(html, "when", row.finished_at);
  add_term(html, "by",
           fmt::format("assay {}{}", row.assay_version,
                       row.assay_commit.empty() ? "" : " (" + row.assay_commit + ")"));
  add_term(html, "seed", std::to_string(row.seed));
  add_term(html, "isolation", row.isolation);
  add_term(html, "on",
           fmt::format("{}, {} cores, {:.3g} GB/s copied, {:.3g} Gflop/s, {}", row.machine.cpu,
                       row.machine.cores, 1e-9 * row.machine.copy_bytes_per_s,
                       1e-9 * row.machine.fma_flops_per_s, row.machine.compiler));
  if (row.key.device == Device::cpu) add_term(html, "compiled for", row.target);
  if (const auto& gpu = row.machine.gpu) {
    add_term(html, "GPU",
             fmt::format("{}, CUDA {}, {} multiprocessors, {:.3g} TB/s copied, ECC {}", gpu->name,
                         gpu->driver, gpu->multiprocessors, 1e-12 * gpu->copy_bytes_per_s,
                         gpu->ecc ? "on" : "off"));
  }
  add_term(html, "sources", row.source_hash);
  html.raw("</dl></section>\n");
}

}  // namespace

std::string cell_document(const CellView& v) {
  Html main, build;
  SourceLinks links(v);
  add_head(main, v);
  add_dimensions(main, v.row->score);
  if (v.evidence) {
    add_build(build, v, links);
    if (v.evidence->build.verdict != Verdict::ok) main.add(build);
    add_failures(main, v, links);
    main.add(timings_section(v)).add(roofline_section(v)).add(counters_section(v));
    main.add(learning_section(v));
    add_errors(main, v);
    add_cases(main, v);
    add_own_tests(main, v);
  }
  if (v.evidence) add_code(main, v, links);
  main.add(sources_section(v, links));
  if (v.evidence && v.evidence->build.verdict == Verdict::ok) main.add(build);
  add_provenance(main, v);
  const CellKey& key = v.row->key;
  return document({path_of(v),
                   title_of(v),
                   {{"Rankings", kIndexPage},
                    {key.model, model_page(key.model)},
                    {v.spec->title, challenge_page(key.challenge, key.device)}}},
                  main);
}

}  // namespace assay::site
