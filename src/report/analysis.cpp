#include "report/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <tuple>
#include <utility>

#include "compare/fast_p.h"
#include "compare/pass_at_k.h"
#include "compare/showings.h"
#include "compare/takeaways.h"
#include "compare/traps.h"
#include "grade/currency.h"
#include "grade/grade.h"
#include "records/lookup.h"
#include "report/comparison.h"
#include "report/figures.h"
#include "report/markdown.h"
#include "report/markdown_text.h"
#include "report/opinions.h"
#include "report/published.h"
#include "report/rankings.h"
#include "report/standings.h"
#include "spec/spec.h"
#include "util/sha256.h"

namespace assay::report {
namespace {

using compare::By;
using compare::Cell;
using compare::Player;
using compare::TrapFigure;

constexpr const char* kJudgesPage = "judges.md";

std::string page_of_model(const std::string& model) { return "models/" + page_name(model) + ".md"; }

std::string page_of_challenge(const ChallengeSpec& spec) {
  return "challenges/" + page_name(spec.name) + ".md";
}

std::string page_of_pair(const std::string& a, const std::string& b) {
  return fmt::format("pairs/{}_against_{}.md", page_name(a), page_name(b));
}

std::string page_of_published(const std::string& name) {
  return "published/" + page_name(name) + ".md";
}

std::string document(const Page& page) {
  return std::string(kGenerated) + "\n\n" + page.to_markdown();
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string percent(double share, Interval i) {
  return fmt::format("{:.0f} % ({:.0f} to {:.0f})", 100 * share, 100 * i.low, 100 * i.high);
}

// "mean 6.1 (4.0 to 8.2) of 4, best 10.1, deviation 2.9"
std::string attempts_text(const Cell& cell) {
  return fmt::format("{} attempts: mean {}, best {}, first {}, standard deviation {}", cell.count(),
                     with_interval(cell.mean.value, cell.mean.interval),
                     points(cell.figure(By::best).value), points(cell.figure(By::first).value),
                     points(cell.spread()));
}

// The score, with warnings that a reader needs before comparing it.
std::string score_text(const compare::Field& field, std::size_t c, const Cell& cell, By by) {
  if (cell.is_stale())
    return grade_and_total(cell.best->score) + field.currency_mark(c, *cell.best);
  if (cell.count() == 0) return kNotRun;
  const Estimate e = cell.figure(by);
  return fmt::format("{} {}{}", letter(e.value), with_interval(e.value, e.interval),
                     is_quick(cell.best->score) ? " (quick)" : "");
}

// --- traps -------------------------------------------------------------------

std::string trap_use(const TrapFigure& t) {
  switch (t.use()) {
    case TrapFigure::Use::separates: return percent(t.separation) + " of pairs";
    case TrapFigure::Use::nobody:
      return t.enough() ? "catches nobody: could go" : "catches nobody yet";
    case TrapFigure::Use::everybody:
      return t.enough() ? "catches everybody: tells nothing apart" : "catches everybody yet";
  }
  return "";
}

std::string fallen_names(const TrapFigure& t) {
  std::string names;
  for (const std::string& model : t.fell) names += (names.empty() ? "" : ", ") + model;
  return names;
}

std::vector<Page::Row> trap_rows(const std::vector<TrapFigure>& traps, bool with_challenge) {
  std::vector<Page::Row> rows;
  for (const TrapFigure& t : traps) {
    Page::Row row;
    if (with_challenge) row.emplace_back(t.challenge->title);
    row.insert(row.end(), {t.trap, t.catches, fmt::format("{} of {}", t.fallen, t.answers),
                           percent(t.share, t.interval), trap_use(t), fallen_names(t)});
    rows.push_back(std::move(row));
  }
  return rows;
}

// --- pages -------------------------------------------------------------------

struct DeviceView {
  Standings standings;
  std::vector<TrapFigure> traps;
};

// Strengths above, weaknesses below.
void add_showings(Page& page, const Standings& all, const Player& player) {
  std::vector<Page::Row> rows;
  for (const compare::Showing& s : compare::Showings(all.field, all.by).of(all.field, player)) {
    rows.push_back({all.field.challenges[s.challenge]->title, points(s.score), points(s.others),
                    fmt::format("{:+.1f}", shown(s.lead()) + 0.0),
                    fmt::format("{} of {}", s.place, s.models)});
  }
  if (rows.empty()) return;
  page.heading(3, "Strengths and weaknesses");
  page.paragraph("Each challenge by how far the model stands above the median of the others.");
  page.table({"Challenge", "Score", "Others", "Lead", "Place"}, "lrrrr", rows);
}

void add_challenge(Page& page, const DeviceView& view, std::size_t c) {
  const Standings& all = view.standings;
  std::vector<const Standing*> entrants;
  for (const Standing& s : all.models) {
    if (s.player->cells[c].best != nullptr) entrants.push_back(&s);
  }
  if (entrants.empty()) return;
  std::ranges::stable_sort(entrants, {}, [&](const Standing* s) {
    const Cell& cell = s->player->cells[c];
    return cell.count() > 0 ? -cell.figure(all.by).value : 1.0;
  });
  const std::size_t count = entrants.size();
  entrants.resize(std::min(count, kRowsPerChallenge));
  page.heading(2, device_title(all.field.device));
  if (all.field.is_partial(c)) {
    std::string missing;
    for (const std::string& m : all.field.gaps[c].missing)
      missing += (missing.empty() ? "" : ", ") + m;
    page.paragraph("Partial: not graded on this device: " + missing +
                   ". These scores enter no average with whole ones.");
  }
  std::vector<std::string> header{"Model", "Score (95 %)", "Attempts"};
  std::vector<Page::Row> rows;
  const auto& dimensions = entrants.front()->player->cells[c].best->score.dimensions;
  for (const Dimension& d : dimensions) header.push_back(d.name);
  header.insert(header.end(), {"Speed", "Verdict"});
  for (const Standing* s : entrants) {
    const Cell& cell = s->player->cells[c];
    Page::Row row{s->model, score_text(all.field, c, cell, all.by),
                  std::to_string(cell.attempts.size())};
    for (const Dimension& d : dimensions)
      row.emplace_back(dimension_points(cell.best->score, d.name));
    row.emplace_back(speed_against_par(cell.best->score));
    row.emplace_back(short_verdict(cell.best->score.verdict));
    rows.push_back(std::move(row));
  }
  page.paragraph(fmt::format(
      "By the {}; dimensions, speed and verdict are of the best attempt.{}", title(all.by),
      count > entrants.size() ? fmt::format(" The best {} of {}.", entrants.size(), count) : ""));
  page.table(header, "lrc" + std::string(dimensions.size() + 1, 'r') + "c", rows);
  for (const Standing* s : entrants) {
    if (s->player->cells[c].count() > 1)
      page.bullet(s->model + ", " + attempts_text(s->player->cells[c]));
  }
  std::vector<TrapFigure> traps;
  std::ranges::copy_if(view.traps, std::back_inserter(traps),
                       [&](const TrapFigure& t) { return t.challenge == all.field.challenges[c]; });
  if (traps.empty()) return;
  page.heading(3, "Traps");
  page.table({"Trap", "Catches", "Fell", "Share of models (95 %)", "Separates", "Who"}, "llrrll",
             trap_rows(traps, false));
}

bool is_named_failure(const CaseSpec* known, CaseGroup group) {
  return known != nullptr && !known->drawn && known->group == group;
}

bool has_named_failure(const Standings& all, std::size_t c, const BoardRow& row) {
  const ChallengeSpec& spec = *all.field.challenges[c];
  return row.failed && std::ranges::any_of(*row.failed, [&](const FailedCase& f) {
           const CaseSpec* known = find_case(spec, f.name);
           return is_named_failure(known, CaseGroup::core) ||
                  is_named_failure(known, CaseGroup::trap);
         });
}

void add_failures_of(Page& page, const Standings& all, std::size_t c, const BoardRow& row) {
  if (!row.failed || row.failed->empty()) return;
  const ChallengeSpec spec = spec_for(all.field.device, *all.field.challenges[c]);
  for (const CaseGroup group : {CaseGroup::core, CaseGroup::trap}) {
    for (const FailedCase& f : *row.failed) {
      const CaseSpec* known = find_case(spec, f.name);
      if (!is_named_failure(known, group)) continue;
      page.bullet(fmt::format("{}: {} case {} ({}){}", spec.title,
                              group == CaseGroup::core ? "core" : "trap", f.name, code(f.verdict),
                              known->catches.empty() ? "" : ": " + known->catches));
    }
  }
}

void add_model(Page& page, const DeviceView& view, const Standing& s) {
  const Standings& all = view.standings;
  page.heading(2, device_title(all.field.device));
  std::string text = "No score.";
  if (s.average) {
    text =
        fmt::format("Average {} by the {} over {} of {} challenges",
                    with_interval(*s.average, s.interval), title(all.by), s.attempted, all.whole);
    text += s.reference   ? ". It is a reference and has no rank."
            : s.rank > 0  ? fmt::format(", rank {}{}.", s.rank, s.tied ? " (tied)" : "")
            : s.stale > 0 ? fmt::format("; not ranked by it, for {} of its results {} stale.",
                                        s.stale, s.stale == 1 ? "is" : "are")
                          : "; not ranked by it, for it left challenges out.";
  } else if (s.stale > 0) {
    text = "No score: its results are stale.";
  }
  if (s.strength) {
    text += fmt::format(
        " Head to head it wins {}, ties {} and loses {}: it beats an average model "
        "with a chance of {}.",
        s.record.wins, s.record.ties, s.record.losses, percent(s.strength->chance()));
  }
  page.paragraph(text);
  const compare::Goal correct = compare::goal_from("correct");
  if (const auto rate = compare::pass_rate(*s.player, correct, 1)) {
    text = fmt::format("pass@1 for 'correct' {}, {} of {} challenges solved",
                       percent(rate->value, *rate->interval),
                       compare::solved_challenges(*s.player, correct),
                       compare::attempted_challenges(*s.player));
    for (const auto reference : {compare::Reference::naive, compare::Reference::par}) {
      if (const auto fast = compare::fast_p(*s.player, all.field.device, reference, 1))
        text += fmt::format("; faster than {} {}", to_string(reference),
                            percent(fast->value, fast->interval));
    }
    page.paragraph(text + ".");
  }
  std::vector<Page::Row> rows;
  for (std::size_t c = 0; c < all.field.challenges.size(); ++c) {
    const Cell& cell = s.player->cells[c];
    if (cell.best == nullptr) continue;
    const ChallengeSpec& spec = *all.field.challenges[c];
    rows.push_back({{spec.title + (all.field.is_partial(c) ? " (partial)" : ""),
                     "../" + page_of_challenge(spec)},
                    score_text(all.field, c, cell, all.by),
                    std::to_string(cell.attempts.size()),
                    cell.count() > 1 ? points(cell.spread()) : "–",
                    speed_against_par(cell.best->score),
                    short_verdict(cell.best->score.verdict),
                    cell.best->reason});
  }
  page.table({"Challenge", "Score (95 %)", "Attempts", "Deviation", "Speed", "Verdict",
              "Main reason (best attempt)"},
             "lrccrcl", rows);
  add_showings(page, all, *s.player);
  bool any = false;
  for (std::size_t c = 0; c < all.field.challenges.size(); ++c) {
    const BoardRow* best = s.player->cells[c].best;
    if (best == nullptr || s.player->cells[c].is_stale()) continue;
    if (!any && has_named_failure(all, c, *best)) {
      page.heading(3, "Core and trap cases that failed, best attempts");
      any = true;
    }
    add_failures_of(page, all, c, *best);
  }
}

ComparisonOptions options_of_pages(By by) {
  ComparisonOptions o;
  o.by = by;
  o.level = 2;
  return o;
}

class Analysis {
 public:
  Analysis(const Scoreboard& board, const std::vector<ChallengeSpec>& specs,
           const AnalysisOptions& options)
      : board_(board), specs_(specs), options_(options) {
    for (const Device device : compare::devices_of(board)) {
      DeviceView view{make_standings(board, specs, device, options.by), {}};
      view.traps = compare::trap_figures(view.standings.field);
      views_.push_back(std::move(view));
    }
  }

  std::map<std::string, std::string> pages() {
    challenges();
    models();
    pairs();
    traps();
    published();
    judges();
    index();
    return std::move(pages_);
  }

 private:
  void challenges() {
    for (std::size_t c = 0; c < specs_.size(); ++c) {
      Page page;
      page.heading(1, specs_[c].title);
      page.paragraph(specs_[c].summary.empty()
                         ? fmt::format("Difficulty: {}.", specs_[c].difficulty)
                         : fmt::format("Difficulty: {}. The task: {}.", specs_[c].difficulty,
                                       specs_[c].summary));
      page.markdown("[All pages](../README.md)");
      for (const DeviceView& view : views_) add_challenge(page, view, c);
      pages_[page_of_challenge(specs_[c])] = document(page);
    }
  }

  void models() {
    for (const DeviceView& view : views_) {
      for (const Standing& s : view.standings.models) {
        if (model_pages_.size() >= kModelPages * views_.size()) break;
        if (model_pages_.contains(s.model)) continue;
        model_pages_.insert(s.model);
        Page page;
        page.heading(1, s.model);
        page.markdown("[All pages](../README.md)");
        for (const DeviceView& other : views_) {
          const auto found = std::ranges::find(other.standings.models, s.model, &Standing::model);
          if (found != other.standings.models.end()) add_model(page, other, *found);
        }
        pages_[page_of_model(s.model)] = document(page);
      }
    }
  }

  void pairs() {
    std::map<std::pair<std::string, std::string>, Page> pages;
    for (const DeviceView& view : views_) {
      for (const auto& [a, b] : pairs_that_matter(view.standings)) {
        auto names = std::pair(a->model, b->model);
        if (pages.contains({b->model, a->model})) names = {b->model, a->model};
        const compare::Field& field = view.standings.field;
        add_comparison(pages[names], field, {field.find(names.first), field.find(names.second)},
                       options_of_pages(view.standings.by));
      }
    }
    for (auto& [names, body] : pages) {
      Page page;
      page.heading(1, fmt::format("{} against {}", names.first, names.second));
      page.markdown("[All pages](../README.md)");
      pages_[page_of_pair(names.first, names.second)] = document(page) + "\n" + body.to_markdown();
      pair_pages_.push_back(names);
    }
  }

  void traps() {
    Page page;
    page.heading(1, "Traps");
    page.markdown("[All pages](README.md)");
    for (const DeviceView& view : views_) add_traps(page, view.standings.field, 2);
    pages_["traps.md"] = document(page);
  }

  void published() {
    for (const auto& [name, grades] : options_.published) {
      Page page;
      page.heading(1, "Published grades: " + name);
      page.markdown("[All pages](../README.md)");
      add_published(page, grades, board_, specs_);
      pages_[page_of_published(name)] = document(page);
    }
  }

  void judges() {
    if (options_.opinions.empty()) return;
    Page page;
    page.heading(1, "Opinions of language models");
    page.markdown("[All pages](README.md)");
    add_judges(page, board_, specs_, options_.opinions);
    pages_[kJudgesPage] = document(page);
  }

  void index() {
    Page page;
    page.heading(1, "Analysis");
    page.markdown(fmt::format(
        "What the board says beyond its [rankings]({}). Every sentence is computed from the\n"
        "scores, with the numbers it comes from.",
        link_target(options_.rankings)));
    if (const std::string stale = stale_text(count_stale(board_, specs_)); !stale.empty())
      page.paragraph(stale);
    for (const DeviceView& view : views_) {
      const auto found = compare::takeaways(view.standings.field, view.traps, view.standings.by);
      if (found.empty()) continue;
      page.heading(2, device_title(view.standings.field.device));
      for (const compare::Takeaway& t : found) page.bullet(t.text);
    }
    page.heading(2, "Pages");
    for (const ChallengeSpec& spec : specs_) page.bullet({spec.title, page_of_challenge(spec)});
    for (const std::string& model : model_pages_) page.bullet({model, page_of_model(model)});
    for (const auto& [a, b] : pair_pages_)
      page.bullet({fmt::format("{} against {}", a, b), page_of_pair(a, b)});
    page.bullet({"Traps, by how well they separate the models", "traps.md"});
    for (const auto& [name, grades] : options_.published)
      page.bullet({"Published grades: " + name, page_of_published(name)});
    if (!options_.opinions.empty())
      page.bullet({"Opinions of language models, beside what was measured", kJudgesPage});
    pages_["README.md"] = document(page);
  }

  const Scoreboard& board_;
  const std::vector<ChallengeSpec>& specs_;
  const AnalysisOptions& options_;
  std::vector<DeviceView> views_;
  std::set<std::string> model_pages_;
  std::vector<std::pair<std::string, std::string>> pair_pages_;
  std::map<std::string, std::string> pages_;
};

}  // namespace

std::string page_name(const std::string& name) {
  constexpr std::size_t kLongest = 80, kDigits = 8;
  std::string plain;
  for (const char c : name) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                      (c == '.' && !plain.empty());
    plain += kept ? c : '_';
  }
  if (plain == name && name.size() <= kLongest && !name.empty()) return plain;
  return plain.substr(0, kLongest) + "~" + sha256_hex(name).substr(0, kDigits);
}

void add_traps(Page& page, const compare::Field& field, int level) {
  const auto traps = compare::trap_figures(field);
  if (traps.empty()) return;
  page.heading(level, device_title(field.device));
  page.paragraph(
      "Traps by how well they separate the models: the mean over all pairs of models of the "
      "difference of the shares of their answers that fell. A trap that catches half of the models "
      "separates best.");
  if (const std::size_t uncounted = compare::uncounted_answers(field); uncounted > 0) {
    page.paragraph(fmt::format(
        "{} answers are not counted: they were measured by other rules than today's, or "
        "their board keeps no failed cases.",
        uncounted));
  }
  page.table({"Challenge", "Trap", "Catches", "Fell", "Share of models (95 %)", "Separates", "Who"},
             "lllrrll", trap_rows(traps, true));
}

std::map<std::string, std::string> analysis_pages(const Scoreboard& board,
                                                  const std::vector<ChallengeSpec>& specs,
                                                  const AnalysisOptions& options) {
  if (board.entries.empty() && options.published.empty()) return {};
  return Analysis(board, specs, options).pages();
}

}  // namespace assay::report
