// Strengths of players that did not all meet: the model of Bradley and Terry (1952).
#pragma once

#include <cstddef>
#include <vector>

#include "assay/results.h"

namespace assay::compare {

// What came of one meeting of two players: of two models at one challenge.
struct Game {
  std::size_t a = 0, b = 0;
  double result = 0.5;    // of a: 1 won, 0.5 tied, 0 lost
  std::size_t event = 0;  // the challenge; all games of an event hang together
};

struct Strength {
  // The logarithm of the odds to beat a player of average strength: 0 is the mean of all that
  // played.
  double value = 0;
  Interval interval;  // 95 %
  std::size_t games = 0;
  int rank = 0;       // 1 + the players whose whole interval lies above; 0 without a game
  bool tied = false;  // another has the same rank
  // Players are in one group where a chain of games leads from one to the other. Strengths of
  // different groups are only comparable by assumption.
  std::size_t group = 0;

  double chance() const;  // to beat an average player: 1 / (1 + exp(-value))
};

// The most likely strengths under P(a beats b) = 1 / (1 + exp(s_b - s_a)), a tie being half a win
// and half a loss (Davidson 1970 discusses why that is safe), found by the MM algorithm (Hunter
// 2004, "MM algorithms for generalized Bradley-Terry models"). Every player with a game also has
// one tie with a phantom, which is penalised likelihood: who won or lost all games then has a
// finite strength, and groups that never met are held together.
//
// An interval spans two: that of the curvature of the likelihood, which takes games as independent,
// and that of a bootstrap over events, which knows that all games of a challenge hang together but
// says nothing of one challenge.
//
// Deterministic. REQUIRES players < 2^16, a, b < players, a != b, 0 <= result <= 1; throws
// std::invalid_argument.
std::vector<Strength> bradley_terry(std::size_t players, const std::vector<Game>&);

}  // namespace assay::compare
