#include "report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compare/effort.h"
#include "compare/fast_p.h"
#include "grade/grade.h"
#include "records/lookup.h"
#include "report/figures.h"
#include "report/markdown.h"
#include "util/text.h"

namespace assay::report {
namespace {

using compare::Duel;
using compare::Fact;
using compare::Field;
using compare::Pair;
using compare::Player;
using Players = std::vector<const Player*>;
using Json = nlohmann::ordered_json;

// "+12.3 (+11.0 to +13.6)"
std::string signed_interval(const Estimate& e) {
  const auto one = [](double v) { return fmt::format("{:+.1f}", shown(v) + 0.0); };
  if (one(e.interval.low) == one(e.interval.high)) return one(e.value);
  return fmt::format("{} ({} to {})", one(e.value), one(e.interval.low), one(e.interval.high));
}

std::string figure_text(const Field& field, const Player& player, std::size_t c, compare::By by) {
  const compare::Cell& cell = player.cells[c];
  if (cell.attempts.empty()) return "–";
  if (cell.is_stale())
    return grade_and_total(cell.best->score) + field.currency_mark(c, *cell.best);
  if (cell.count() == 0) return kNotRun;
  const Estimate e = cell.figure(by);
  std::string text = fmt::format("{} {}", letter(e.value), with_interval(e.value, e.interval));
  if (cell.count() > 1) text += fmt::format(", {} attempts", cell.count());
  if (is_quick(cell.best->score)) text += " (quick)";
  return text;
}

std::string winner_text(const Duel& d, const Player& a, const Player& b) {
  switch (d.outcome) {
    case Duel::Outcome::a_wins: return a.model;
    case Duel::Outcome::b_wins: return b.model;
    case Duel::Outcome::tie: return "tie";
    case Duel::Outcome::not_compared: break;
  }
  return d.why_not.empty() ? "–" : "not compared: " + d.why_not;
}

std::string challenge_title(const Field& field, std::size_t c) {
  return field.challenges[c]->title + (field.is_partial(c) ? " (partial)" : "");
}

std::vector<Fact> all_facts(const Field& field, const Pair& pair, const Duel& d,
                            const ComparisonOptions& o) {
  if (!d.why_not.empty()) return {};
  const std::size_t c = d.challenge;
  const BoardRow *a = pair.a->cells[c].best, *b = pair.b->cells[c].best;
  if (a == nullptr || b == nullptr) return {};
  auto facts = compare::decisive_facts(*a, *b, *field.challenges[c]);
  if (!o.evidence) return facts;
  const auto more = o.evidence(*a, *b, *field.challenges[c]);
  facts.insert(facts.end(), more.begin(), more.end());
  return facts;
}

std::string fact_text(const Pair& pair, const Fact& f) {
  const std::string& who = f.whose == compare::Side::a ? pair.a->model : pair.b->model;
  return f.kind == Fact::Kind::resource ? fmt::format("{} does better at {}", who, f.text)
                                        : fmt::format("{} {}", who, f.text);
}

std::string titles(const Field& field, const std::vector<std::size_t>& challenges) {
  std::string text;
  for (const std::size_t c : challenges)
    text += (text.empty() ? "" : ", ") + field.challenges[c]->title;
  return text;
}

// "10.7 points more (9.8 to 11.6)"
std::string points_more(const Estimate& margin) {
  const bool fewer = shown(margin.value) < 0;
  const auto one = [&](double v) { return points((fewer ? -1 : 1) * shown(v) + 0.0); };
  const std::string low = one(fewer ? margin.interval.high : margin.interval.low),
                    high = one(fewer ? margin.interval.low : margin.interval.high);
  return fmt::format("{} points {}{}", one(margin.value), fewer ? "fewer" : "more",
                     low == high ? "" : fmt::format(" ({} to {})", low, high));
}

std::string record_text(const Pair& pair) {
  const compare::Record& r = pair.record;
  if (r.games() == 0) return "They have no whole challenge in common that could be compared.";
  return fmt::format(
      "{} wins {}, ties {} and loses {} of {} whole {} that both attempted; on "
      "average it scores {}.",
      pair.a->model, r.wins, r.ties, r.losses, r.games(),
      r.games() == 1 ? "challenge" : "challenges", points_more(*pair.margin));
}

// --- figures over attempts -----------------------------------------------------

std::string share_in_percent(double value, const std::optional<Interval>& i) {
  if (!i) return fmt::format("{:.0f} %", 100 * value);
  return fmt::format("{:.0f} % ({:.0f} to {:.0f})", 100 * value, 100 * i->low, 100 * i->high);
}

constexpr std::array kReferences{compare::Reference::naive, compare::Reference::par,
                                 compare::Reference::floor};

Page::Row figures_of(const Field& field, const Player& player, const ComparisonOptions& o) {
  Page::Row row{player.model, fmt::format("{} of {}", compare::solved_challenges(player, o.goal),
                                          compare::attempted_challenges(player))};
  for (const std::size_t k : o.k) {
    const auto rate = compare::pass_rate(player, o.goal, k);
    row.emplace_back(rate ? share_in_percent(rate->value, rate->interval) : "–");
  }
  for (const compare::Reference reference : kReferences) {
    for (const double p : o.p) {
      const auto rate = compare::fast_p(player, field.device, reference, p);
      row.emplace_back(rate ? share_in_percent(rate->value, rate->interval) : "–");
    }
  }
  for (const compare::Reference reference : kReferences) {
    const auto speed = compare::mean_speed(player, reference);
    row.emplace_back(speed ? fmt::format("{:.3g}x, {} {}", speed->speed.value, speed->answers,
                                         speed->answers == 1 ? "answer" : "answers")
                           : "–");
  }
  const compare::Effort effort = compare::effort_of(player, o.goal);
  const auto tokens = effort.per_solved(effort.tokens), cost = effort.per_solved(effort.cost_usd);
  row.emplace_back(tokens ? fmt::format("{:.0f}", *tokens) : "–");
  row.emplace_back(cost ? dollars(*cost) : "–");
  return row;
}

void add_figures(Page& page, const Field& field, const Players& players,
                 const ComparisonOptions& o) {
  std::vector<std::string> header{"Model", "Solved"};
  for (const std::size_t k : o.k) header.push_back(fmt::format("pass@{}", k));
  for (const compare::Reference reference : kReferences) {
    for (const double p : o.p)
      header.push_back(fmt::format("fast_{:g} on {}", p, to_string(reference)));
  }
  for (const compare::Reference reference : kReferences)
    header.push_back(fmt::format("Speed-up on {}", to_string(reference)));
  header.insert(header.end(), {"Tokens per solved", "Cost per solved"});
  std::vector<Page::Row> rows;
  for (const Player* player : players) rows.push_back(figures_of(field, *player, o));
  page.heading(o.level + 1, "Over attempts");
  page.paragraph(
      fmt::format("Solved is '{}'. Speed-ups are means over correct answers alone.", o.goal.name));
  page.table(header, "lc" + std::string(header.size() - 2, 'r'), rows);
}

// --- two models ------------------------------------------------------------------

void add_dimensions(Page& page, const Field& field, const Players& players,
                    const ComparisonOptions& o) {
  // Two models share the same challenges; with more models, each is compared with the first.
  bool any = false;
  for (std::size_t p = 1; p < players.size(); ++p) {
    const Pair pair = compare::compare_pair(field, *players[0], *players[p], o.by, o.goal);
    std::vector<Page::Row> rows;
    for (const compare::DimensionPair& d : pair.dimensions) {
      rows.push_back({d.name, points(d.a), points(d.b),
                      fmt::format("{:+.1f}", shown(d.a - d.b) + 0.0), tenths(d.max),
                      std::to_string(d.challenges)});
    }
    if (rows.empty()) continue;
    if (!any) {
      page.heading(o.level + 1, "Dimensions");
      page.paragraph("Mean points over the challenges that both have, best attempts.");
    }
    any = true;
    page.table({"Dimension", pair.a->model, pair.b->model, "Difference", "Of", "Challenges"},
               "lrrrrr", rows);
  }
}

void add_pair_scores(Page& page, const Field& field, const Pair& pair, compare::By by) {
  std::vector<Page::Row> rows;
  bool timings_alone = false;
  for (const Duel& d : pair.duels) {
    timings_alone = timings_alone || (d.timings_alone && d.outcome != Duel::Outcome::not_compared);
    rows.push_back({challenge_title(field, d.challenge),
                    figure_text(field, *pair.a, d.challenge, by),
                    figure_text(field, *pair.b, d.challenge, by),
                    d.margin && d.why_not.empty() ? signed_interval(*d.margin) : "–",
                    winner_text(d, *pair.a, *pair.b)});
  }
  page.table({"Challenge", pair.a->model, pair.b->model, "Difference (95 %)", "Better"}, "lrrrl",
             rows);
  if (timings_alone) {
    page.paragraph(
        "With one attempt each, an interval is of timings alone: it says nothing about "
        "what another attempt would come to.");
  }
}

void add_facts(Page& page, const Field& field, const Pair& pair, const ComparisonOptions& o) {
  bool any = false;
  for (const Duel& d : pair.duels) {
    const auto facts = all_facts(field, pair, d, o);
    if (facts.empty()) continue;
    if (!any) page.heading(o.level + 1, "What decided");
    any = true;
    page.heading(o.level + 2, challenge_title(field, d.challenge));
    for (const Fact& f : facts) page.bullet(fact_text(pair, f));
  }
  const auto alone = [&](const Player& who, const Player& other,
                         const std::vector<std::size_t>& solved) {
    if (solved.empty()) return;
    page.paragraph(fmt::format("{} has a solution ({}) where {} has none: {}.", who.model,
                               o.goal.name, other.model, titles(field, solved)));
  };
  alone(*pair.a, *pair.b, pair.only_a_solved);
  alone(*pair.b, *pair.a, pair.only_b_solved);
}

// The model that is better than all others at a challenge, beyond noise, else those that tie for
// the lead or cannot be compared.
std::string leaders(const Field& field, const Players& players, std::size_t c, compare::By by) {
  const auto outcome = [&](const Player* a, const Player* b) {
    return compare::duel(field, *a, *b, c, by).outcome;
  };
  Players undefeated;
  for (const Player* p : players) {
    if (p->cells[c].count() == 0) continue;
    const bool beaten = std::ranges::any_of(players, [&](const Player* other) {
      return other != p && outcome(p, other) == Duel::Outcome::b_wins;
    });
    if (!beaten) undefeated.push_back(p);
  }
  if (undefeated.empty()) return "–";
  std::string text;
  bool compared = true;
  for (const Player* p : undefeated) {
    text += (text.empty() ? "" : ", ") + p->model;
    compared = compared && std::ranges::all_of(undefeated, [&](const Player* other) {
                 return other == p || outcome(p, other) != Duel::Outcome::not_compared;
               });
  }
  if (undefeated.size() == 1) return text;
  return (compared ? "tie of " : "not compared: ") + text;
}

void add_overview(Page& page, const Field& field, const Players& players,
                  const ComparisonOptions& o) {
  std::vector<std::string> header{"Challenge"};
  for (const Player* p : players) header.push_back(p->model);
  header.emplace_back("Best");
  std::vector<Page::Row> rows;
  for (std::size_t c = 0; c < field.challenges.size(); ++c) {
    const bool any = std::ranges::any_of(
        players, [&](const Player* p) { return !p->cells[c].attempts.empty(); });
    if (!any) continue;
    Page::Row row{challenge_title(field, c)};
    for (const Player* p : players) row.emplace_back(figure_text(field, *p, c, o.by));
    row.emplace_back(leaders(field, players, c, o.by));
    rows.push_back(std::move(row));
  }
  page.table(header, "l" + std::string(players.size(), 'r') + "l", rows);
  for (std::size_t i = 0; i < players.size(); ++i) {
    for (std::size_t j = i + 1; j < players.size(); ++j) {
      const Pair pair = compare::compare_pair(field, *players[i], *players[j], o.by, o.goal);
      if (pair.record.games() > 0)
        page.bullet(fmt::format("Against {}: {}", players[j]->model, record_text(pair)));
    }
  }
}

// --- JSON ----------------------------------------------------------------------

Json interval_of(const Estimate& e) { return Json::array({e.interval.low, e.interval.high}); }

Json estimate_json(const std::optional<Estimate>& e) {
  if (!e) return nullptr;
  return {{"value", e->value}, {"interval", interval_of(*e)}};
}

const char* outcome_name(Duel::Outcome outcome) {
  switch (outcome) {
    case Duel::Outcome::a_wins: return "a";
    case Duel::Outcome::b_wins: return "b";
    case Duel::Outcome::tie: return "tie";
    case Duel::Outcome::not_compared: break;
  }
  return "not compared";
}

const char* kind_name(Fact::Kind kind) {
  switch (kind) {
    case Fact::Kind::build: return "build";
    case Fact::Kind::core: return "core";
    case Fact::Kind::trap: return "trap";
    case Fact::Kind::edge: return "edge";
    case Fact::Kind::capability: return "capability";
    case Fact::Kind::speed: return "speed";
    case Fact::Kind::resource: return "resource";
  }
  return "?";
}

Json duel_json(const Field& field, const Pair& pair, const Duel& d, const ComparisonOptions& o) {
  Json j{{"challenge", field.challenges[d.challenge]->name},
         {"a", estimate_json(d.a)},
         {"b", estimate_json(d.b)},
         {"attempts",
          {{"a", pair.a->cells[d.challenge].count()}, {"b", pair.b->cells[d.challenge].count()}}},
         {"difference", estimate_json(d.why_not.empty() ? d.margin : std::nullopt)},
         {"better", outcome_name(d.outcome)},
         {"partial", d.partial},
         {"facts", Json::array()}};
  if (!d.why_not.empty()) j["why_not"] = d.why_not;
  for (const Fact& f : all_facts(field, pair, d, o)) {
    j["facts"].push_back({{"kind", kind_name(f.kind)},
                          {"whose", f.whose == compare::Side::a ? "a" : "b"},
                          {"text", f.text}});
  }
  return j;
}

Json share_json(double value, const std::optional<Interval>& i) {
  Json j{{"value", value}, {"interval", nullptr}};
  if (i) j["interval"] = {i->low, i->high};
  return j;
}

Json figures_json(const Field& field, const Player& player, const ComparisonOptions& o) {
  Json j{{"model", player.model},
         {"solved", compare::solved_challenges(player, o.goal)},
         {"attempted", compare::attempted_challenges(player)},
         {"pass_at_k", Json::array()},
         {"fast_p", Json::array()},
         {"speed", Json::array()}};
  for (const std::size_t k : o.k) {
    const auto rate = compare::pass_rate(player, o.goal, k);
    if (!rate) continue;
    Json entry = share_json(rate->value, rate->interval);
    entry["k"] = k;
    entry["challenges"] = rate->challenges;
    j["pass_at_k"].push_back(std::move(entry));
  }
  for (const compare::Reference reference : kReferences) {
    for (const double p : o.p) {
      const auto rate = compare::fast_p(player, field.device, reference, p);
      if (!rate) continue;
      Json entry = share_json(rate->value, rate->interval);
      entry["p"] = p;
      entry["reference"] = to_string(reference);
      j["fast_p"].push_back(std::move(entry));
    }
    if (const auto speed = compare::mean_speed(player, reference)) {
      Json entry = estimate_json(speed->speed);
      entry["reference"] = to_string(reference);
      entry["answers"] = speed->answers;
      j["speed"].push_back(std::move(entry));
    }
  }
  const compare::Effort effort = compare::effort_of(player, o.goal);
  const auto known = [](const std::optional<double>& v) { return v ? Json(*v) : Json(); };
  j["tokens_per_solved"] = known(effort.per_solved(effort.tokens));
  j["cost_usd_per_solved"] = known(effort.per_solved(effort.cost_usd));
  return j;
}

Json pair_json(const Field& field, const Pair& pair, const ComparisonOptions& o) {
  Json j{{"a", pair.a->model},
         {"b", pair.b->model},
         {"wins", pair.record.wins},
         {"ties", pair.record.ties},
         {"losses", pair.record.losses},
         {"difference", estimate_json(pair.margin)},
         {"challenges", Json::array()},
         {"dimensions", Json::array()},
         {"only_a_solved", Json::array()},
         {"only_b_solved", Json::array()}};
  for (const Duel& d : pair.duels) j["challenges"].push_back(duel_json(field, pair, d, o));
  for (const compare::DimensionPair& d : pair.dimensions) {
    j["dimensions"].push_back(
        {{"name", d.name}, {"a", d.a}, {"b", d.b}, {"max", d.max}, {"challenges", d.challenges}});
  }
  for (const std::size_t c : pair.only_a_solved)
    j["only_a_solved"].push_back(field.challenges[c]->name);
  for (const std::size_t c : pair.only_b_solved)
    j["only_b_solved"].push_back(field.challenges[c]->name);
  return j;
}

}  // namespace

void add_comparison(Page& page, const Field& field, const Players& players,
                    const ComparisonOptions& o) {
  std::string names;
  for (std::size_t i = 0; i < players.size(); ++i) {
    const bool last = i + 1 == players.size();
    names += (i == 0 ? "" : last && players.size() == 2 ? " against " : ", ") + players[i]->model;
  }
  page.heading(o.level, fmt::format("{}: {}", names, device_title(field.device)));
  page.paragraph(fmt::format("Each score is the {}.", title(o.by)));
  if (players.size() > 2) {
    add_overview(page, field, players, o);
    add_figures(page, field, players, o);
    add_dimensions(page, field, players, o);
    return;
  }
  const Pair pair = compare::compare_pair(field, *players[0], *players[1], o.by, o.goal);
  page.paragraph(record_text(pair));
  add_pair_scores(page, field, pair, o.by);
  add_figures(page, field, players, o);
  add_dimensions(page, field, players, o);
  add_facts(page, field, pair, o);
}

Json comparison_json(const Field& field, const Players& players, const ComparisonOptions& o) {
  Json j{{"device", to_string(field.device)},
         {"by", to_string(o.by)},
         {"solved", o.goal.name},
         {"models", Json::array()},
         {"pairs", Json::array()}};
  for (const Player* player : players) j["models"].push_back(figures_json(field, *player, o));
  for (std::size_t a = 0; a < players.size(); ++a) {
    for (std::size_t b = a + 1; b < players.size(); ++b) {
      j["pairs"].push_back(pair_json(
          field, compare::compare_pair(field, *players[a], *players[b], o.by, o.goal), o));
    }
  }
  return j;
}

}  // namespace assay::report
