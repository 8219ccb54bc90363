// What was observed of an attack, and whether it is what is right. Pure.
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

// Most points that an attack may have more than its honest twin.
inline constexpr double kMostPoints = 0.5;
// Two honest contenders whose rounds happen to agree differ by this all the same.
inline constexpr double kLeastNoise = 1.02;

// Where the same honest code in both places reads more than this, a small gain would not show.
inline constexpr double kMostNoise = 1.25;

// How many times as fast as its twin, from rounds that both took part in, in random order; and the
// twin against itself, in the same rounds.
struct Gain {
  double value = 1;
  Interval interval, noise;

  double most_noise() const;  // the larger way from 1 of the noise, never below kLeastNoise

  enum class Told { nothing_gained, gained, not_told };
  // Not told: it did not gain beyond noise, but noise would hide a gain of kMostNoise.
  Told told() const;
};

struct Observation {
  std::string outcome;  // a verdict's code, kHonest, or kHung, kDied, kSkipped
  std::string detail;   // of the first case that made it, or the build's log
  std::string log;      // of the build
  double seconds = 0;   // that it took, all in all
  std::optional<Gain> gain;
  std::optional<double>
      points_gained;          // over the twin, with whatever noise gave to the attack taken off
  bool said_witness = false;  // the submission said that its mechanism ran
  std::string neighbour;      // what became different of an honest cell, "" for nothing
  std::vector<std::string> left_behind;
};

inline constexpr char kHung[] = "hung", kDied[] = "died", kSkipped[] = "skipped";

// The worst verdict over the build and the cases, kHonest when all pass, and the detail that goes
// with it. Not one case that was run: kSkipped.
Observation outcome_of(const CellResult&);

// Of the rounds that all three took part in; nothing when there are none.
std::optional<Gain> gain_of(std::span<const TimingSample> attack,
                            std::span<const TimingSample> twin,
                            std::span<const TimingSample> other_twin);

// Of the gains in several cases the one that says most against the attack: one that is told, then
// one that cannot be told, then the largest.
std::optional<Gain> worst_of(std::span<const Gain>);

// Whether something shows that the attack's mechanism ran.
bool has_witness(const Attack&, const Observation&);

// Whether what a worker printed holds the line of the attack's witness, alone in its line.
bool says_witness(const Attack&, std::string_view printed);

// What the dimensions of the attack's score have over those of its twin; what others of them lack
// hides no gain. Of each the most that its interval allows to be noise is taken off. `other_twin`
// is the twin measured once more, or null.
double points_gained(const Score& attack, const Score& twin, const Score* other_twin);

struct Problem {
  Mechanism mechanism;
  std::string text;
};

// What is not as it should be, had the row no canary. Nothing is said of what was skipped.
std::vector<Problem> problems(const Attack&, const Observation&);

// Why this is not as it should be; "" when it is. Of a canary: that its mechanism reported nothing,
// or that others reported something too.
std::string complaint(const Attack&, const Observation&);

// Whether nothing but a gain speaks against it. A busy machine can give one, or hide one: on the
// clock, and in points where tests go by time.
bool is_up_to_chance(const Attack&, const Observation&);

// The outcome of several tries of such a row. It passes once more tries told no gain than told one,
// and fails once three more told a gain: on a busy machine two in a row may do so by chance. A try
// that told nothing counts for nothing, and a row that is undecided after kMostTries fails.
class Tries {
 public:
  void add(const Attack&, const Observation&);
  bool settled() const;
  bool gained() const { return gained_ > 0 && gained_ >= clean_; }
  std::string text() const;  // "told 1 gain and 2 times none in 4 tries"

 private:
  static constexpr int kMostTries = 7, kBeyondChance = 3;
  int tries_ = 0, gained_ = 0, clean_ = 0;
};

// Both ways; the JSON is also what a row says in --json.
nlohmann::json to_json(const Observation&);
Observation observation_from(const nlohmann::json&);

}  // namespace assay::attack
