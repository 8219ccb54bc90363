#include "compare/pairwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compare/bootstrap.h"
#include "compare/fast_p.h"
#include "grade/currency.h"
#include "grade/gpu.h"
#include "grade/grade.h"
#include "records/lookup.h"
#include "records/scoreboard.h"
#include "records/simulated_work.h"
#include "spec/spec.h"
#include "util/text.h"

namespace assay::compare {
namespace {

constexpr std::size_t kFactsShown = 3;  // per kind

std::map<std::string, Verdict> failures_of(const BoardRow& row) {
  std::map<std::string, Verdict> failures;
  if (row.failed) {
    for (const FailedCase& f : *row.failed) failures.emplace(f.name, f.verdict);
  }
  return failures;
}

// The cases of a group that one model failed and the other passed, heaviest first.
std::vector<const CaseSpec*> failed_alone(const ChallengeSpec& spec, CaseGroup group,
                                          const std::map<std::string, Verdict>& failed,
                                          const std::map<std::string, Verdict>& others) {
  std::vector<const CaseSpec*> found;
  for (const CaseSpec& c : spec.cases) {
    if (c.group == group && !c.drawn && failed.contains(c.name) && !others.contains(c.name))
      found.push_back(&c);
  }
  std::ranges::stable_sort(found, std::greater(), &CaseSpec::weight);
  return found;
}

std::string and_more(std::size_t all) {
  return all <= kFactsShown ? "" : fmt::format(", and {} more", all - kFactsShown);
}

// Adds one fact per side for cases of a group that only that side fails, with what they catch.
void add_failures(std::vector<Fact>& facts, const ChallengeSpec& spec, CaseGroup group,
                  Fact::Kind kind, const char* what, const BoardRow& a, const BoardRow& b) {
  const auto failed_a = failures_of(a), failed_b = failures_of(b);
  for (const Side side : {Side::a, Side::b}) {
    const auto& own = side == Side::a ? failed_a : failed_b;
    const auto found = failed_alone(spec, group, own, side == Side::a ? failed_b : failed_a);
    if (found.empty()) continue;
    std::string text;
    for (std::size_t i = 0; i < std::min(found.size(), kFactsShown); ++i) {
      text += fmt::format("{}{} ({}{})", i == 0 ? "" : ", ", found[i]->name,
                          code(own.at(found[i]->name)),
                          found[i]->catches.empty() ? "" : ": " + found[i]->catches);
    }
    facts.push_back({kind, side,
                     fmt::format("fails {} {}{}, which the other passes{}", found.size(),
                                 found.size() == 1 ? what : std::string(what) + "s",
                                 ": " + text + and_more(found.size()),
                                 kind == Fact::Kind::core ? "; that caps it at 59 points" : "")});
  }
}

std::set<std::string> lost_capabilities(const ChallengeSpec& spec, const BoardRow& row) {
  const auto failed = failures_of(row);
  std::set<std::string> lost;
  for (const CaseSpec& c : spec.cases) {
    if (c.group == CaseGroup::completeness && failed.contains(c.name)) lost.insert(c.capability);
  }
  return lost;
}

void add_capabilities(std::vector<Fact>& facts, const ChallengeSpec& spec, const BoardRow& a,
                      const BoardRow& b) {
  const auto lost_a = lost_capabilities(spec, a), lost_b = lost_capabilities(spec, b);
  for (const Side side : {Side::a, Side::b}) {
    std::vector<std::string> more;
    std::ranges::set_difference(side == Side::a ? lost_b : lost_a,
                                side == Side::a ? lost_a : lost_b, std::back_inserter(more));
    if (more.empty()) continue;
    std::string text;
    for (std::size_t i = 0; i < std::min(more.size(), 2 * kFactsShown); ++i)
      text += (i == 0 ? "" : ", ") + more[i];
    if (more.size() > 2 * kFactsShown)
      text += fmt::format(" and {} more", more.size() - 2 * kFactsShown);
    facts.push_back({Fact::Kind::capability, side,
                     fmt::format("has {} {} that the other lacks: {}", more.size(),
                                 more.size() == 1 ? "capability" : "capabilities", text)});
  }
}

void add_speed(std::vector<Fact>& facts, const BoardRow& a, const BoardRow& b) {
  const bool sim = a.key.device == Device::sim;
  const Reference reference = sim ? Reference::floor : Reference::par;
  const auto x = speed_against(a, reference), y = speed_against(b, reference);
  if (!x || !y || a.score.speeds.size() != b.score.speeds.size()) return;
  const bool apart = x->interval.low > y->interval.high || y->interval.low > x->interval.high;
  const Side fast = x->value > y->value ? Side::a : Side::b;
  const double ratio = std::max(x->value, y->value) / std::min(x->value, y->value);
  constexpr double kLeast = 1.1;
  if (!apart || ratio < kLeast) return;
  facts.push_back({Fact::Kind::speed, fast,
                   fmt::format("is {:.3g} times as fast: {:.3g} against {:.3g} times the {} of {}",
                               ratio, std::max(x->value, y->value), std::min(x->value, y->value),
                               sim ? "modelled speed" : "speed", sim ? "the floor" : "par")});
}

std::vector<DimensionPair> dimensions_of(const Player& a, const Player& b) {
  std::vector<DimensionPair> all;
  for (std::size_t i = 0; i < a.cells.size(); ++i) {
    const Cell &x = a.cells[i], &y = b.cells[i];
    if (x.count() == 0 || y.count() == 0 || !why_not_compared(*x.best, *y.best).empty()) continue;
    for (const Dimension& d : x.best->score.dimensions) {
      const auto& others = y.best->score.dimensions;
      const auto other = std::ranges::find(others, d.name, &Dimension::name);
      if (other == others.end() || !d.points || !other->points) continue;
      auto found = std::ranges::find(all, d.name, &DimensionPair::name);
      if (found == all.end()) found = all.insert(all.end(), {.name = d.name});
      found->a += *d.points;
      found->b += *other->points;
      found->max += d.max;
      ++found->challenges;
    }
  }
  for (DimensionPair& d : all) {
    const auto n = static_cast<double>(d.challenges);
    d.a /= n;
    d.b /= n;
    d.max /= n;
  }
  return all;
}

bool any_solved(const Cell& cell, const Goal& goal) {
  return std::ranges::any_of(cell.graded, [&](const BoardRow* row) { return goal.reached(*row); });
}

// The median of the rule's metric over its cases that passed.
std::optional<double> median_metric(const CellResult& cell, const ResourceRule& rule) {
  std::vector<double> values;
  for (const std::string& name : rule.case_names) {
    const CaseResult* r = find_case(cell, name);
    const double* value =
        r == nullptr || r->verdict != Verdict::ok ? nullptr : find_metric(r->metrics, rule.metric);
    if (value != nullptr && std::isfinite(*value)) values.push_back(*value);
  }
  if (values.empty()) return {};
  return median(values);
}

void add_ratio(std::vector<Fact>& facts, const std::string& what, const std::string& unit,
               bool smaller_is_better, double a, double b) {
  const double most = std::max(a, b), least = std::min(a, b);
  if (most <= 0 || (least > 0 && most / least < kNotableRatio)) return;
  const Side better = (a < b) == smaller_is_better ? Side::a : Side::b;
  const double own = better == Side::a ? a : b, other = better == Side::a ? b : a;
  facts.push_back(
      {Fact::Kind::resource, better,
       fmt::format("{}: {} against {}", what, amount_text(own, unit), amount_text(other, unit))});
}

struct Moved {
  double bytes = 0, launches = 0;
};

// Totals over the timed cases.
std::optional<Moved> moved_by(const CellResult& cell) {
  Moved moved;
  bool any = false;
  for (const CaseResult& r : cell.cases) {
    if (r.group != CaseGroup::timed) continue;
    const auto work = simulated_work(r.metrics);
    if (!work || r.verdict != Verdict::ok) return {};
    moved.bytes += bytes_moved(work->counters);
    moved.launches += static_cast<double>(work->counters.launches);
    any = true;
  }
  if (!any) return {};
  return moved;
}

}  // namespace

std::vector<Fact> decisive_facts(const BoardRow& a, const BoardRow& b, const ChallengeSpec& whole) {
  std::vector<Fact> facts;
  if (!was_built(a) || !was_built(b)) {
    for (const Side side : {Side::a, Side::b}) {
      const BoardRow& row = side == Side::a ? a : b;
      if (!was_built(row))
        facts.push_back(
            {Fact::Kind::build, side, fmt::format("{}: {}", code(row.score.verdict), row.reason)});
    }
    return facts;
  }
  const ChallengeSpec spec = spec_for(a.key.device, whole);
  if (a.failed && b.failed) {
    add_failures(facts, spec, CaseGroup::core, Fact::Kind::core, "core case", a, b);
    add_failures(facts, spec, CaseGroup::trap, Fact::Kind::trap, "trap case", a, b);
    add_failures(facts, spec, CaseGroup::edge, Fact::Kind::edge, "edge case", a, b);
    add_capabilities(facts, spec, a, b);
  }
  add_speed(facts, a, b);
  return facts;
}

std::vector<Fact> resource_facts(const CellResult& a, const CellResult& b,
                                 const ChallengeSpec& whole) {
  std::vector<Fact> facts;
  for (const ResourceRule& rule : spec_for(a.key.device, whole).resources) {
    const auto x = median_metric(a, rule), y = median_metric(b, rule);
    if (x && y) add_ratio(facts, rule.name, rule.unit, rule.full <= rule.zero, *x, *y);
  }
  const auto x = moved_by(a), y = moved_by(b);
  if (x && y) {
    constexpr double kMega = 1e-6;
    add_ratio(facts, "moved over the timed cases", "MB", true, kMega * x->bytes, kMega * y->bytes);
    add_ratio(facts, "launches over the timed cases", "", true, x->launches, y->launches);
  }
  return facts;
}

Duel duel(const Field& field, const Player& a, const Player& b, std::size_t challenge, By by) {
  const Cell &x = a.cells[challenge], &y = b.cells[challenge];
  Duel d;
  d.challenge = challenge;
  d.partial = field.is_partial(challenge);
  if (x.count() > 0) d.a = x.figure(by);
  if (y.count() > 0) d.b = y.figure(by);
  if (x.is_stale() || y.is_stale()) d.why_not = "stale";
  if (!d.a || !d.b) return d;
  d.margin = difference(*d.a, *d.b);
  d.timings_alone = x.count() == 1 && y.count() == 1;
  d.why_not = why_not_compared(*x.best, *y.best);
  if (!d.why_not.empty()) return d;
  d.outcome = is_above_zero(*d.margin)   ? Duel::Outcome::a_wins
              : is_below_zero(*d.margin) ? Duel::Outcome::b_wins
                                         : Duel::Outcome::tie;
  return d;
}

Pair compare_pair(const Field& field, const Player& a, const Player& b, By by, const Goal& goal) {
  Pair pair;
  pair.a = &a;
  pair.b = &b;
  std::vector<std::vector<Estimate>> margins;
  for (std::size_t i = 0; i < field.challenges.size(); ++i) {
    if (a.cells[i].attempts.empty() && b.cells[i].attempts.empty()) continue;
    const Duel d = duel(field, a, b, i, by);
    if (d.outcome != Duel::Outcome::not_compared && !d.partial) {
      ++(d.outcome == Duel::Outcome::a_wins   ? pair.record.wins
         : d.outcome == Duel::Outcome::b_wins ? pair.record.losses
                                              : pair.record.ties);
      margins.push_back({*d.margin});
    }
    if (d.a && d.b) {
      const bool solved_a = any_solved(a.cells[i], goal), solved_b = any_solved(b.cells[i], goal);
      if (solved_a && !solved_b) pair.only_a_solved.push_back(i);
      if (solved_b && !solved_a) pair.only_b_solved.push_back(i);
    }
    pair.duels.push_back(d);
  }
  pair.dimensions = dimensions_of(a, b);
  if (!margins.empty()) pair.margin = mean_over_cells(margins);
  return pair;
}

std::vector<Game> games_of(const Field& field, const std::vector<std::size_t>& players, By by) {
  std::vector<Game> games;
  for (std::size_t c = 0; c < field.challenges.size(); ++c) {
    if (field.is_partial(c)) continue;
    // Computes each figure once, not once per game: a mean of attempts needs a bootstrap.
    struct Entrant {
      std::size_t player;
      const BoardRow* row;
      Estimate figure;
    };
    std::vector<Entrant> entrants;
    for (std::size_t p = 0; p < players.size(); ++p) {
      const Cell& cell = field.players[players[p]].cells[c];
      if (cell.count() > 0) entrants.push_back({p, cell.best, cell.figure(by)});
    }
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      for (std::size_t j = i + 1; j < entrants.size(); ++j) {
        if (!why_not_compared(*entrants[i].row, *entrants[j].row).empty()) continue;
        const Estimate margin = difference(entrants[i].figure, entrants[j].figure);
        const double result = is_above_zero(margin) ? 1 : is_below_zero(margin) ? 0 : 0.5;
        games.push_back({entrants[i].player, entrants[j].player, result, c});
      }
    }
  }
  return games;
}

}  // namespace assay::compare
