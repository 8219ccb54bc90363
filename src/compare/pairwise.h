// Compares two models on one device: which is better at each challenge, by how much, and why.
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

// Something one model's submission did and the other's did not.
struct Fact {
  enum class Kind : std::uint8_t { build, core, trap, edge, capability, speed, resource };
  Kind kind = Kind::core;
  Side whose = Side::a;  // the subject of the text
  std::string text;      // "fails the core case gqa (WA)"; untrusted, unsanitised
};

// `a` and `b` are measurements of one challenge on one device. The weightiest facts come first:
// failed builds, core cases, traps, edge cases, capabilities, speed. Case names require boards that
// keep them (BoardRow::failed); drawn cases are left out, because their names mean nothing.
std::vector<Fact> decisive_facts(const BoardRow& a, const BoardRow& b, const ChallengeSpec&);

// Facts that require the evidence: bytes and other metrics that the challenge bounds, and on the
// simulated GPU bytes moved and launches. Only ratios of at least kNotableRatio.
inline constexpr double kNotableRatio = 1.5;
std::vector<Fact> resource_facts(const CellResult& a, const CellResult& b, const ChallengeSpec&);

struct Duel {
  enum class Outcome : std::uint8_t { a_wins, b_wins, tie, not_compared };
  std::size_t challenge = 0;       // its index in the field
  std::optional<Estimate> a, b;    // absent: no total
  std::optional<Estimate> margin;  // a - b, if both have a total
  Outcome outcome = Outcome::not_compared;
  std::string why_not;         // why they are not compared; "" if one was never graded
  bool partial = false;        // the challenge is partial on this device
  bool timings_alone = false;  // one attempt each: the interval covers timings only
};

// A difference counts if its whole interval lies on one side of zero. A quick score is not compared
// with a full one, nor are measurements that why_apart() keeps apart.
Duel duel(const Field&, const Player& a, const Player& b, std::size_t challenge, By);

struct Record {
  int wins = 0, ties = 0, losses = 0;
  int games() const { return wins + ties + losses; }
};

// A dimension's points, as each model's mean over the challenges that both answered (best
// attempts).
struct DimensionPair {
  std::string name;
  double a = 0, b = 0;  // mean points, out of `max`
  double max = 0;       // mean weight
  std::size_t challenges = 0;
};

struct Pair {
  const Player *a = nullptr, *b = nullptr;
  std::vector<Duel> duels;  // one per challenge that either attempted
  Record record;            // from a's view, without partial challenges
  std::vector<DimensionPair> dimensions;
  std::vector<std::size_t> only_a_solved, only_b_solved;  // of challenges that both attempted
  // Mean margin over the compared challenges that are not partial; absent if there are none.
  std::optional<Estimate> margin;
};

Pair compare_pair(const Field&, const Player& a, const Player& b, By, const Goal&);

// All meetings of the players at challenges that are not partial. `players` holds indices into the
// field's players; games number players by their place in `players`. Events are challenges.
std::vector<Game> games_of(const Field&, const std::vector<std::size_t>& players, By);

}  // namespace assay::compare
