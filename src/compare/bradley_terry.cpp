#include "compare/bradley_terry.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "assay/random.h"
#include "measure/statistics.h"

namespace assay::compare {
namespace {

constexpr int kEventDraws = 200;
constexpr double kZ95 = 1.959963984540054;

// A square matrix of doubles, symmetric or not. Eigen is not an option: the references compile it
// for another instruction set, and the two cannot be in one program.
class Square {
 public:
  explicit Square(std::size_t n) : n_(n), values_(n * n, 0) {}
  double& at(std::size_t i, std::size_t j) { return values_[i * n_ + j]; }
  double at(std::size_t i, std::size_t j) const { return values_[i * n_ + j]; }
  std::size_t size() const { return n_; }

 private:
  std::size_t n_;
  std::vector<double> values_;
};

// How often each pair met and each player won; a tie is half a win.
struct Meetings {
  Square met;
  std::vector<double> won;
};

Meetings meetings_of(std::size_t players, const std::vector<Game>& games,
                     const std::vector<double>& weight_of_event) {
  Meetings m{Square(players), std::vector<double>(players, 0)};
  for (const Game& g : games) {
    const double weight = weight_of_event[g.event];
    if (weight == 0) continue;
    m.met.at(g.a, g.b) += weight;
    m.met.at(g.b, g.a) += weight;
    m.won[g.a] += weight * g.result;
    m.won[g.b] += weight * (1 - g.result);
  }
  return m;
}

// Computes exp(strength) of all players from a first guess. A player without games only has the tie
// with the phantom.
void find_odds(const Meetings& m, double tolerance, std::vector<double>& odds) {
  constexpr int kMostSteps = 10000;
  for (int step = 0; step < kMostSteps; ++step) {
    double most = 0;
    for (std::size_t i = 0; i < odds.size(); ++i) {
      double played = 1 / (odds[i] + 1);
      for (std::size_t j = 0; j < odds.size(); ++j) played += m.met.at(i, j) / (odds[i] + odds[j]);
      const double next = (m.won[i] + 0.5) / played;
      most = std::max(most, std::abs(std::log(next / odds[i])));
      odds[i] = next;
    }
    if (most < tolerance) return;
  }
}

// The inverse of a positive definite matrix by Cholesky: the inverse factor's transpose times the
// inverse factor.
Square inverse_of(Square a) {
  const std::size_t n = a.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) a.at(j, j) -= a.at(j, k) * a.at(j, k);
    a.at(j, j) = std::sqrt(a.at(j, j));
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) a.at(i, j) -= a.at(i, k) * a.at(j, k);
      a.at(i, j) /= a.at(j, j);
    }
  }
  Square factor(n), inverse(n);
  for (std::size_t c = 0; c < n; ++c) {
    for (std::size_t i = c; i < n; ++i) {
      double sum = i == c ? 1 : 0;
      for (std::size_t k = c; k < i; ++k) sum -= a.at(i, k) * factor.at(k, c);
      factor.at(i, c) = sum / a.at(i, i);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = std::max(i, j); k < n; ++k)
        inverse.at(i, j) += factor.at(k, i) * factor.at(k, j);
    }
  }
  return inverse;
}

// The mean over the players with games.
double mean_of_played(const std::vector<double>& values, const std::vector<bool>& played) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!played[i]) continue;
    sum += values[i];
    ++count;
  }
  return sum / count;
}

// Log odds minus the mean over the players with games: only relative strengths matter.
std::vector<double> centred(const std::vector<double>& odds, const std::vector<bool>& played) {
  std::vector<double> values;
  for (const double o : odds) values.push_back(std::log(o));
  const double mean = mean_of_played(values, played);
  for (double& v : values) v -= mean;
  return values;
}

// Standard errors of centred strengths, from the curvature of the penalised likelihood; the phantom
// makes it positive definite.
std::vector<double> standard_errors(const Meetings& m, const std::vector<double>& odds,
                                    const std::vector<bool>& played) {
  const std::size_t n = odds.size();
  Square information(n);
  for (std::size_t i = 0; i < n; ++i) {
    information.at(i, i) += odds[i] / ((1 + odds[i]) * (1 + odds[i]));
    for (std::size_t j = 0; j < n; ++j) {
      if (i == j) continue;
      const double both = odds[i] + odds[j],
                   curvature = m.met.at(i, j) * odds[i] * odds[j] / both / both;
      information.at(i, i) += curvature;
      information.at(i, j) -= curvature;
    }
  }
  const Square covariance = inverse_of(std::move(information));
  // Covariance of each strength with the mean, and the variance of the mean.
  std::vector<double> with_mean(n, 0), errors(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> row;
    for (std::size_t j = 0; j < n; ++j) row.push_back(covariance.at(i, j));
    with_mean[i] = mean_of_played(row, played);
  }
  const double of_mean = mean_of_played(with_mean, played);
  for (std::size_t i = 0; i < n; ++i)
    errors[i] = std::sqrt(std::max(0.0, covariance.at(i, i) - 2 * with_mean[i] + of_mean));
  return errors;
}

std::vector<std::vector<double>> drawn_strengths(std::size_t players,
                                                 const std::vector<Game>& games, std::size_t events,
                                                 const std::vector<double>& odds,
                                                 const std::vector<bool>& played) {
  std::vector<std::vector<double>> drawn(players);
  Random random(mix64(players) ^ games.size());
  for (int draw = 0; draw < kEventDraws; ++draw) {
    std::vector<double> weights(events, 0);
    for (std::size_t e = 0; e < events; ++e)
      weights[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(events)))] += 1;
    std::vector<double> found = odds;
    constexpr double kRough = 1e-3;
    find_odds(meetings_of(players, games, weights), kRough, found);
    const std::vector<double> values = centred(found, played);
    for (std::size_t i = 0; i < players; ++i) drawn[i].push_back(values[i]);
  }
  return drawn;
}

void find_groups(const std::vector<Game>& games, std::vector<Strength>& all) {
  std::vector<std::size_t> leader(all.size());
  std::iota(leader.begin(), leader.end(), std::size_t{0});
  const auto find = [&](std::size_t i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  for (const Game& g : games) {
    const std::size_t a = find(g.a), b = find(g.b);
    leader[std::max(a, b)] = std::min(a, b);
  }
  std::map<std::size_t, std::size_t> numbers;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].group = numbers.try_emplace(find(i), numbers.size()).first->second;
}

void rank_strengths(std::vector<Strength>& all) {
  std::map<int, int> holders;
  for (Strength& s : all) {
    if (s.games == 0) continue;
    s.rank = 1;
    for (const Strength& other : all) {
      if (other.games > 0 && other.interval.low > s.interval.high) ++s.rank;
    }
    ++holders[s.rank];
  }
  for (Strength& s : all) s.tied = s.games > 0 && holders[s.rank] > 1;
}

}  // namespace

double Strength::chance() const { return 1 / (1 + std::exp(-value)); }

std::vector<Strength> bradley_terry(std::size_t players, const std::vector<Game>& games) {
  std::vector<Strength> all(players);
  std::size_t events = 0;
  for (const Game& g : games) {
    if (g.a >= players || g.b >= players || g.a == g.b || !(g.result >= 0 && g.result <= 1))
      throw std::invalid_argument("a game that cannot be");
    events = std::max(events, g.event + 1);
    ++all[g.a].games;
    ++all[g.b].games;
  }
  if (games.empty()) return all;
  // Renumbers events, so that only those with a game are drawn.
  std::map<std::size_t, std::size_t> numbers;
  std::vector<Game> numbered = games;
  for (Game& g : numbered) g.event = numbers.try_emplace(g.event, numbers.size()).first->second;
  events = numbers.size();
  const Meetings m = meetings_of(players, numbered, std::vector<double>(events, 1));
  constexpr double kFine = 1e-9;
  std::vector<double> odds(players, 1);
  find_odds(m, kFine, odds);
  std::vector<bool> played(players);
  for (std::size_t i = 0; i < players; ++i) played[i] = all[i].games > 0;
  const std::vector<double> values = centred(odds, played),
                            errors = standard_errors(m, odds, played);
  const auto drawn = drawn_strengths(players, numbered, events, odds, played);
  for (std::size_t i = 0; i < players; ++i) {
    Strength& s = all[i];
    if (s.games == 0) continue;
    s.value = values[i];
    constexpr double kLow = 0.025, kHigh = 0.975;
    s.interval = {std::min(s.value - kZ95 * errors[i], quantile(drawn[i], kLow)),
                  std::max(s.value + kZ95 * errors[i], quantile(drawn[i], kHigh))};
  }
  find_groups(numbered, all);
  rank_strengths(all);
  return all;
}

}  // namespace assay::compare
