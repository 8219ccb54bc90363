// Decides how often a timed case is repeated. Pure functions.
#pragma once

#include <cstddef>
#include <span>

#include "assay/case.h"
#include "assay/results.h"

namespace assay::cases {

// A slow submission is measured less often: repetitions stop once its calls have taken
// kSubmissionBudget, but not before kLeastRepetitions.
inline constexpr double kSubmissionBudget = 8;  // seconds
inline constexpr int kLeastRepetitions = 3, kQuickRepetitions = 3;
// On a busy machine repetitions go on, up to kMostTimes times the spec's count and for at most
// kExtensionBudget, until the interval of the speed relative to par is no wider than kNarrow over
// at least kLeastCalm undisturbed rounds.
inline constexpr int kMostTimes = 4;
inline constexpr double kExtensionBudget = 1.5;  // seconds
inline constexpr double kNarrow = 1.06;          // high / low
inline constexpr std::size_t kLeastCalm = 5;

// One submission's measurements in the case so far.
struct Measured {
  double called = 0;    // seconds in its own calls
  double extended = 0;  // seconds: its share of the rounds beyond those planned
  std::span<const TimingSample> samples{};
};

// Rounds are counted from 0; round -1 warms up.
class Repetitions {
 public:
  Repetitions(const CaseSpec&, bool quick);

  // Whether the submission takes part in the round.
  bool wants(int round, const Measured&) const;

  // Naive never runs more than its own repetitions, because it is slow and only sets the scale. It
  // warms up only in quick runs, where it is measured once.
  bool naive_takes_part(int round) const;

  bool is_extension(int round) const { return round >= planned_; }

 private:
  bool quick_;
  int planned_, naive_;
};

// Whether the speed relative to par is known narrowly enough.
bool settled(std::span<const TimingSample>);

}  // namespace assay::cases
