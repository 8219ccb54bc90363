// Observations of an attack, and whether they are as expected. Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/results.h"
#include "attack/attack.h"
#include "attack/mechanism.h"

namespace assay::attack {

// Maximum points that an attack may gain over its honest twin.
inline constexpr double kMostPoints = 0.5;
// Minimum noise assumed, even if the rounds of two honest contenders happen to agree.
inline constexpr double kLeastNoise = 1.02;

// If the ratio of two runs of the same honest code exceeds this, a small gain would be hidden.
inline constexpr double kMostNoise = 1.25;

// The attack's speed relative to its twin, from rounds in which both ran in random order; and the
// twin's speed relative to itself, in the same rounds.
struct Gain {
  double value = 1;
  Interval interval, noise;

  double most_noise() const;  // the noise's larger factor away from 1, at least kLeastNoise

  enum class Told { nothing_gained, gained, not_told };
  // not_told: no gain beyond noise, but the noise could hide a gain of kMostNoise.
  Told told() const;
};

struct Observation {
  std::string outcome;  // a verdict's code, kHonest, or kHung, kDied, kSkipped
  std::string detail;   // of the case that determined it, or of the build's log
  std::string log;      // of the build
  double seconds = 0;   // total duration
  std::optional<Gain> gain;
  std::optional<double> points_gained;  // over the twin, less what noise may account for
  bool said_witness = false;            // the submission reported that its mechanism ran
  std::string neighbour;                // what changed about an honest cell, "" if nothing
  std::vector<std::string> left_behind;
};

inline constexpr char kHung[] = "hung", kDied[] = "died", kSkipped[] = "skipped";

// The worst verdict over build and cases, or kHonest if all pass, with its detail. kSkipped if no
// case was run.
Observation outcome_of(const CellResult&);

// The gain over the rounds in which all three took part; nothing if there are none.
std::optional<Gain> gain_of(std::span<const TimingSample> attack,
                            std::span<const TimingSample> twin,
                            std::span<const TimingSample> other_twin);

// Of the gains in several cases, the one most damning for the attack: `gained` before `not_told`
// before `nothing_gained`, then the largest.
std::optional<Gain> worst_of(std::span<const Gain>);

// Whether there is evidence that the attack's mechanism ran.
bool has_witness(const Attack&, const Observation&);

// Whether a worker's output contains the attack's witness line, as a full line.
bool says_witness(const Attack&, std::string_view printed);

// Points by which the attack's dimensions exceed its twin's, summed; losses in other dimensions do
// not offset gains. Each gain is reduced by as much as the intervals allow to be noise.
// `other_twin` is the twin measured once more, or null.
double points_gained(const Score& attack, const Score& twin, const Score* other_twin);

struct Problem {
  Mechanism mechanism;
  std::string text;
};

// Everything wrong with the row, as if it were not a canary. Skipped rows get no verdict or witness
// problem.
std::vector<Problem> problems(const Attack&, const Observation&);

// What is wrong with the row; "" if nothing. For a canary: that its mechanism reported nothing, or
// that others reported something.
std::string complaint(const Attack&, const Observation&);

// Whether a gain is the only problem. A busy machine can cause or hide one, both in time and in
// points that depend on time.
bool is_up_to_chance(const Attack&, const Observation&);

// The outcome of several tries of such a row. It passes once more tries told no gain than told one,
// and fails once three more told a gain: on a busy machine two in a row may do so by chance. A try
// that told nothing counts for nothing, and a row that is undecided after kMostTries fails.
class Tries {
 public:
  void add(const Attack&, const Observation&);
  bool settled() const;
  bool gained() const { return gained_ > 0 && gained_ >= clean_; }
  std::string text() const;  // "1 of 4 tries told a gain, 2 told none"

 private:
  static constexpr int kMostTries = 7, kBeyondChance = 3;
  int tries_ = 0, gained_ = 0, clean_ = 0;
  bool decided_ = false;
};

// Conversion both ways; --json prints the same JSON for a row.
nlohmann::json to_json(const Observation&);
Observation observation_from(const nlohmann::json&);

}  // namespace assay::attack
