#include "report/standings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "compare/bootstrap.h"
#include "report/figures.h"

namespace assay::report {
namespace {

using compare::By;
using compare::Cell;
using compare::Field;

// The scores that make up an average over cells, cell by cell.
std::vector<Estimate> scores_of(const Cell& cell, By by) {
  if (by == By::best) return {compare::score_of(*cell.best)};
  if (by == By::first) return {compare::score_of(*cell.graded.front())};
  std::vector<Estimate> scores;
  for (const BoardRow* row : cell.graded) scores.push_back(compare::score_of(*row));
  return scores;
}

Estimate average_over(const compare::Player& player, const std::vector<std::size_t>& challenges,
                      By by) {
  std::vector<std::vector<Estimate>> cells;
  for (const std::size_t c : challenges) cells.push_back(scores_of(player.cells[c], by));
  Estimate e = compare::mean_over_cells(cells);
  e.interval = clamp(e.interval, 0, 100);
  return e;
}

std::vector<std::size_t> attempted_whole(const Field& field, const compare::Player& player) {
  std::vector<std::size_t> attempted;
  for (std::size_t c = 0; c < field.challenges.size(); ++c) {
    if (player.cells[c].count() > 0 && !field.is_partial(c)) attempted.push_back(c);
  }
  return attempted;
}

Standing standing_of(const Field& field, const compare::Player& player, std::size_t whole, By by) {
  Standing s;
  s.model = player.model;
  s.player = &player;
  const auto attempted = attempted_whole(field, player);
  s.attempted = static_cast<int>(attempted.size());
  s.complete = whole > 0 && attempted.size() == whole;
  for (std::size_t c = 0; c < field.challenges.size(); ++c) {
    s.partial += player.cells[c].count() > 0 && field.is_partial(c) ? 1 : 0;
    s.stale += player.cells[c].is_stale() && !field.is_partial(c) ? 1 : 0;
  }
  if (attempted.empty()) return s;
  const Estimate e = average_over(player, attempted, by);
  s.average = e.value;
  s.interval = e.interval;
  const auto value = [&](By figure) {
    double sum = 0;
    for (const std::size_t c : attempted) sum += player.cells[c].figure(figure).value;
    return sum / static_cast<double>(attempted.size());
  };
  s.first = value(By::first);
  s.mean = value(By::mean);
  s.best = value(By::best);
  return s;
}

// Ranks the items that `ranked` accepts; `Item` has interval, rank and tied.
template <class Item, class Ranked>
void rank_all(std::vector<Item>& items, Ranked ranked) {
  std::map<int, int> holders;
  for (Item& item : items) {
    if (!ranked(item)) continue;
    item.rank = 1;
    for (const Item& other : items) {
      if (ranked(other) && clearly_above(other.interval, item.interval)) ++item.rank;
    }
    ++holders[item.rank];
  }
  for (Item& item : items) item.tied = ranked(item) && holders[item.rank] > 1;
}

void sort_standings(std::vector<Standing>& models) {
  std::ranges::sort(models, {}, [](const Standing& s) {
    return std::tuple(s.reference, s.rank == 0, s.rank, s.rank == 0 ? -s.attempted : 0,
                      -s.average.value_or(0), s.model);
  });
}

// References take part in the comparison but take no rank.
void rank_strengths_of_models(std::vector<Standing>& models) {
  std::map<int, int> holders;
  for (Standing& s : models) {
    if (!s.strength) continue;
    s.strength->rank = s.reference ? 0 : 1;
    for (const Standing& other : models) {
      const bool above = !s.reference && !other.reference && other.strength &&
                         other.strength->interval.low > s.strength->interval.high;
      s.strength->rank += above ? 1 : 0;
    }
    ++holders[s.strength->rank];
  }
  for (Standing& s : models) {
    if (s.strength) s.strength->tied = s.strength->rank > 0 && holders[s.strength->rank] > 1;
  }
}

void meet(Standings& all) {
  std::vector<std::size_t> order;  // of models; those that are compared at all come first
  for (std::size_t i = 0; i < all.models.size(); ++i) {
    if (all.models[i].average) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const Standing& s = all.models[i];
    return std::tuple(-s.attempted, -*s.average, s.model);
  });
  order.resize(std::min(order.size(), kMostMet));
  all.met = order.size();
  std::vector<std::size_t> players;
  for (const std::size_t i : order) {
    players.push_back(static_cast<std::size_t>(all.models[i].player - all.field.players.data()));
  }
  const auto games = compare::games_of(all.field, players, all.by);
  const auto strengths = compare::bradley_terry(players.size(), games);
  for (std::size_t p = 0; p < order.size(); ++p) {
    if (strengths[p].games > 0) all.models[order[p]].strength = strengths[p];
  }
  const auto count = [&](std::size_t player, double result) {
    compare::Record& r = all.models[order[player]].record;
    ++(result > 0.5 ? r.wins : result < 0.5 ? r.losses : r.ties);
  };
  for (const compare::Game& g : games) {
    count(g.a, g.result);
    count(g.b, 1 - g.result);
  }
  rank_strengths_of_models(all.models);
}

}  // namespace

Standings make_standings(const Scoreboard& board, const std::vector<ChallengeSpec>& specs,
                         Device device, By by) {
  Standings all;
  all.field = compare::make_field(board, specs, device);
  all.by = by;
  for (std::size_t c = 0; c < specs.size(); ++c) all.whole += all.field.is_partial(c) ? 0 : 1;
  for (const compare::Player& player : all.field.players) {
    all.models.push_back(standing_of(all.field, player, all.whole, by));
    all.models.back().reference = is_reference(board, player.model);
  }
  rank_all(all.models, [](const Standing& s) { return s.complete && !s.reference; });
  sort_standings(all.models);
  meet(all);
  return all;
}

std::vector<const ChallengeSpec*> left_out(const Standings& all, const Standing& s) {
  std::vector<const ChallengeSpec*> missing;
  for (std::size_t c = 0; c < all.field.challenges.size(); ++c) {
    if (s.player->cells[c].count() == 0 && !all.field.is_partial(c))
      missing.push_back(all.field.challenges[c]);
  }
  return missing;
}

std::vector<SubsetRanking> subset_rankings(const Standings& all, std::size_t most) {
  std::map<std::vector<std::size_t>, std::size_t> sets;  // -> models that attempted exactly these
  std::map<std::string, std::vector<std::size_t>> attempted;
  for (const Standing& s : all.models) {
    attempted[s.model] = attempted_whole(all.field, *s.player);
    if (s.average && !s.complete) ++sets[attempted[s.model]];
  }
  std::vector<std::pair<std::size_t, std::vector<std::size_t>>> order;
  for (const auto& [set, models] : sets) order.emplace_back(models, set);
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
    return std::tuple(a.first, a.second.size()) > std::tuple(b.first, b.second.size());
  });
  std::vector<SubsetRanking> rankings;
  for (const auto& [models, set] : order) {
    if (rankings.size() == most) break;
    SubsetRanking ranking;
    ranking.challenges = set;
    for (const Standing& s : all.models) {
      if (!std::ranges::includes(attempted[s.model], set)) continue;
      const Estimate e = average_over(*s.player, set, all.by);
      ranking.places.push_back({&s, e.value, e.interval});
    }
    if (ranking.places.size() < 2) continue;
    rank_all(ranking.places, [](const SubsetRanking::Place& p) { return !p.standing->reference; });
    std::ranges::sort(ranking.places, {}, [](const SubsetRanking::Place& p) {
      return std::tuple(p.standing->reference, p.rank, -p.average, p.standing->model);
    });
    rankings.push_back(std::move(ranking));
  }
  return rankings;
}

std::string place_among_others(const Standings& all, const std::string& model,
                               const std::string& challenge) {
  const auto s = std::ranges::find(all.models, model, &Standing::model);
  const auto column = std::ranges::find(all.field.challenges, challenge, &ChallengeSpec::name);
  if (s == all.models.end() || column == all.field.challenges.end()) return "";
  std::string text;
  const auto i = static_cast<std::size_t>(column - all.field.challenges.begin());
  const Cell& cell = s->player->cells[i];
  if (cell.count() > 1) {
    text += fmt::format("attempts: {}, mean {}, best {}, first {}, standard deviation {}\n",
                        cell.count(), with_interval(cell.mean.value, cell.mean.interval),
                        points(cell.figure(By::best).value), points(cell.figure(By::first).value),
                        points(cell.spread()));
  }
  const auto missing = left_out(all, *s);
  if (missing.empty() || !s->average) return text;
  std::string titles;
  for (const ChallengeSpec* spec : missing) {
    const auto c = static_cast<std::size_t>(std::ranges::find(all.field.challenges, spec) -
                                            all.field.challenges.begin());
    titles += (titles.empty() ? "" : ", ") + spec->title +
              (s->player->cells[c].is_stale() ? " (stale)" : "");
  }
  return text + fmt::format(
                    "its average is over {} of {} challenges, without {}; it is not ranked "
                    "by it\n",
                    s->attempted, all.whole, titles);
}

std::vector<std::pair<const Standing*, const Standing*>> pairs_that_matter(const Standings& all) {
  std::vector<const Standing*> scored;
  for (const Standing& s : all.models) {
    if (s.average) scored.push_back(&s);
  }
  std::vector<std::pair<const Standing*, const Standing*>> pairs;
  const std::size_t leaders = std::min(scored.size(), kPairsOfLeaders);
  for (std::size_t i = 0; i < leaders; ++i) {
    for (std::size_t j = i + 1; j < leaders; ++j) pairs.emplace_back(scored[i], scored[j]);
  }
  for (std::size_t i = leaders; i < scored.size() && pairs.size() < kPairPages; ++i)
    pairs.emplace_back(scored[i - 1], scored[i]);
  return pairs;
}

bool clearly_above(Interval a, Interval b) { return a.low > b.high + compare::kLeastShown; }

}  // namespace assay::report
