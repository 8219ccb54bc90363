// What was observed of an attack, and whether it is what is right. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/results.h"
#include "attack/attack.h"

namespace assay::attack {

// Most points that an attack may have more than its honest twin.
inline constexpr double kMostPoints = 0.5;
// Two honest contenders whose rounds happen to agree differ by this all the same.
inline constexpr double kLeastNoise = 1.02;

// How many times as fast as its twin, from rounds that both took part in; and the twin against
// itself.
struct Gain {
  double value = 1;
  Interval interval, noise;

  double most_noise() const;  // the larger way from 1 of the noise, never below kLeastNoise
};

struct Observation {
  std::string outcome;  // a verdict's code, kHonest, or kHung, kDied, kSkipped
  std::string detail;   // of the first case that made it, or the build's log
  std::string log;      // of the build
  double seconds = 0;   // that it took, all in all
  std::optional<Gain> gain;
  std::optional<double>
      points_gained;      // over the twin, with whatever noise gave to the attack taken off
  std::string neighbour;  // what became different of an honest cell, "" for nothing
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

// What the dimensions of the attack's score have over those of its twin; what others of them lack
// hides no gain. Of each the most that its interval allows to be noise is taken off. `other_twin`
// is the twin measured once more, or null.
double points_gained(const Score& attack, const Score& twin, const Score* other_twin);

// Why this is not as it should be; "" when it is. Nothing is said of what was skipped.
std::string complaint(const Attack&, const Observation&);

// Whether all that is wrong with it is a gain on the clock, which a busy machine can give.
bool is_only_gain(const Attack&, const Observation&);

// Both ways; the JSON is also what a row says in --json.
nlohmann::json to_json(const Observation&);
Observation observation_from(const nlohmann::json&);

}  // namespace assay::attack
