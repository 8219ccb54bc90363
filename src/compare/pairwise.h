// Two models side by side on one device: who is better where, by how much, and what decided it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "compare/bradley_terry.h"
#include "compare/field.h"
#include "compare/pass_at_k.h"

namespace assay::compare {

enum class Side : std::uint8_t { a, b };

// What one model's answer did that the other's did not.
struct Fact {
  enum class Kind : std::uint8_t { build, core, trap, edge, capability, speed, resource };
  Kind kind = Kind::core;
  Side whose = Side::a;  // the subject of the text
  std::string text;      // "fails the core case gqa (WA)"; untrusted, not made safe
};

// `a` and `b` are measurements of one challenge on one device. What weighs most comes first: what
// was never built, core cases, traps, edge cases, capabilities, speed. Names of cases need boards
// that keep them (BoardRow::failed); drawn cases are left out, for their names say nothing.
std::vector<Fact> decisive_facts(const BoardRow& a, const BoardRow& b, const ChallengeSpec&);

// The same of what only the evidence knows: bytes and other metrics that the challenge bounds, and
// on the simulated GPU bytes moved and launches. Only differences of kNotableRatio and more.
inline constexpr double kNotableRatio = 1.5;
std::vector<Fact> resource_facts(const CellResult& a, const CellResult& b, const ChallengeSpec&);

struct Duel {
  enum class Outcome : std::uint8_t { a_wins, b_wins, tie, not_compared };
  std::size_t challenge = 0;       // its index in the field
  std::optional<Estimate> a, b;    // absent: no total
  std::optional<Estimate> margin;  // a - b, where both have one
  Outcome outcome = Outcome::not_compared;
  std::string why_not;         // they are not compared; "" where one was never graded
  bool partial = false;        // of the challenge on this device
  bool timings_alone = false;  // one attempt each: the interval says nothing about another
};

// A difference counts when its whole interval lies on one side of zero. Not compared are a quick
// score with a full one, and measurements against different versions of a spec.
Duel duel(const Field&, const Player& a, const Player& b, std::size_t challenge, By);

struct Record {
  int wins = 0, ties = 0, losses = 0;
  int games() const { return wins + ties + losses; }
};

// Points of a dimension as a share of its weight, each model's mean over the challenges that both
// answered, best attempts.
struct DimensionPair {
  std::string name;
  double a = 0, b = 0;  // points of the mean weight
  double max = 0;       // mean weight
  std::size_t challenges = 0;
};

struct Pair {
  const Player *a = nullptr, *b = nullptr;
  std::vector<Duel> duels;  // one for each challenge that either attempted
  Record record;            // of a, without partial challenges
  std::vector<DimensionPair> dimensions;
  std::vector<std::size_t> only_a_solved, only_b_solved;  // of those that both attempted
  // Mean of the margins over the whole challenges that were compared; absent without one.
  std::optional<Estimate> margin;
};

Pair compare_pair(const Field&, const Player& a, const Player& b, By, const Goal&);

// All meetings of the players at whole challenges; `players` are indices into the field's. Numbered
// as in that list; events are challenges.
std::vector<Game> games_of(const Field&, const std::vector<std::size_t>& players, By);

}  // namespace assay::compare
