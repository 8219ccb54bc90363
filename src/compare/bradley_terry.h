// Strengths of players that have not all met: the model of Bradley and Terry (1952).
#pragma once

#include <cstddef>
#include <vector>

#include "assay/results.h"

namespace assay::compare {

// The result of one meeting of two players: two models at one challenge.
struct Game {
  std::size_t a = 0, b = 0;
  double result = 0.5;    // for a: 1 won, 0.5 tied, 0 lost
  std::size_t event = 0;  // the challenge; games of one event are dependent
};

struct Strength {
  // The log odds of beating a player of average strength: 0 is the mean over the players with
  // games.
  double value = 0;
  Interval interval;  // 95 %
  std::size_t games = 0;
  int rank = 0;       // 1 + the players whose whole interval lies above; 0 without a game
  bool tied = false;  // another has the same rank
  // Players are in one group if a chain of games connects them. Strengths of different groups are
  // comparable only by assumption.
  std::size_t group = 0;

  double chance() const;  // of beating an average player: 1 / (1 + exp(-value))
};

// The most likely strengths under P(a beats b) = 1 / (1 + exp(s_b - s_a)), with a tie as half a win
// and half a loss (Davidson 1970 discusses why that is safe), by the MM algorithm (Hunter 2004, "MM
// algorithms for generalized Bradley-Terry models"). Every player also has one tie with a phantom,
// which amounts to a penalised likelihood: players who won or lost all games get a finite strength,
// and groups that never met are held together.
//
// Each interval spans two: one from the curvature of the likelihood, which treats games as
// independent, and one from a bootstrap over events, which accounts for the dependence of games of
// one challenge but is meaningless for a single challenge.
//
// Deterministic. REQUIRES players < 2^16, a, b < players, a != b, 0 <= result <= 1; throws
// std::invalid_argument.
std::vector<Strength> bradley_terry(std::size_t players, const std::vector<Game>&);

}  // namespace assay::compare
