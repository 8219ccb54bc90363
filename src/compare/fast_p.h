// Speed of correct answers: fast_p, and means of speed-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/results.h"
#include "compare/field.h"

namespace assay::compare {

// To which a speed is relative: an expert's implementation, a plain one, and what the machine could
// at all, which nothing beats. On the simulated GPU all of them are modelled.
enum class Reference : std::uint8_t { par, naive, floor };
const char* to_string(Reference);
std::optional<Reference> reference_from(const std::string&);

// The geometric mean over an answer's timed cases of its speed relative to the reference. Absent
// where none was timed, or where the row does not know the reference: a challenge without a par
// kernel on the simulated GPU, a row of before the CPU's floor was measured.
std::optional<Estimate> speed_against(const BoardRow&, Reference);

struct FastRate {
  double value = 0;   // share of attempts that are correct and faster than p times the reference
  Interval interval;  // 95 %, Wilson's
  std::size_t fast = 0, attempts = 0;
};

// fast_p (Ouyang et al. 2025, KernelBench): mean over challenges of the share of attempts with a
// total that are correct and more than p times as fast as the reference. An attempt that was not
// timed is not fast. Absent where nothing was attempted, and of par on the simulated GPU, where not
// every challenge has one, and of the CPU's floor where no row knows it.
std::optional<FastRate> fast_p(const Player&, Device, Reference, double p);

struct SpeedMean {
  Estimate speed;           // geometric mean over challenges; the interval is of the timings
  std::size_t answers = 0;  // correct ones that were timed: one a challenge, the best attempt
};
// Of correct answers alone; how many those are belongs beside it: who solves only what is easy to
// make fast looks faster. Absent where there is none.
std::optional<SpeedMean> mean_speed(const Player&, Reference);

}  // namespace assay::compare
