#include "cases/repetitions.h"

#include <vector>

#include "measure/statistics.h"

namespace assay::cases {

Repetitions::Repetitions(const CaseSpec& spec, bool quick)
    : quick_(quick),
      planned_(quick ? kQuickRepetitions : spec.repetitions),
      naive_(quick ? 1 : spec.naive_repetitions) {}

bool Repetitions::wants(int round, const Measured& measured) const {
  if (round >= kLeastRepetitions && measured.called > kSubmissionBudget) return false;
  if (round < planned_) return true;
  if (quick_ || round >= kMostTimes * planned_) return false;
  return measured.extended <= kExtensionBudget && !settled(measured.samples);
}

bool Repetitions::naive_takes_part(int round) const { return round < 0 ? quick_ : round < naive_; }

bool settled(std::span<const TimingSample> samples) {
  const std::vector<TimingSample> calm = calm_rounds(samples);
  if (calm.size() < kLeastCalm) return false;
  std::vector<double> par, submission;
  for (const TimingSample& s : calm) {
    par.push_back(*s.par);
    submission.push_back(*s.submission);
  }
  const Interval interval = estimate_ratio(par, submission).interval;
  return interval.high <= kNarrow * interval.low;
}

}  // namespace assay::cases
