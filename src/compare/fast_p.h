// Speed of correct submissions: fast_p, and mean speed-ups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/results.h"
#include "compare/field.h"

namespace assay::compare {

// What a speed is relative to: an expert's implementation, a plain one, or the machine's limit,
// which nothing beats. On the simulated GPU all of them are modelled.
enum class Reference : std::uint8_t { par, naive, floor };
const char* to_string(Reference);

// The geometric mean over a submission's timed cases of its speed relative to the reference. Absent
// if no case was timed, or if the row lacks the reference: on the simulated GPU a challenge without
// a par kernel, on the CPU a row from before the floor was measured.
std::optional<Estimate> speed_against(const BoardRow&, Reference);

struct FastRate {
  double value = 0;   // share of attempts that are correct and faster than p times the reference
  Interval interval;  // 95 %, Wilson's
  std::size_t fast = 0, attempts = 0;
};

// fast_p (Ouyang et al. 2025, KernelBench): the mean over challenges of the share of attempts with
// a total that are correct and more than p times as fast as the reference. An attempt that was not
// timed is not fast. Absent if nothing was attempted, for par on the simulated GPU, where not every
// challenge has a par, and for the CPU's floor if no row has it.
std::optional<FastRate> fast_p(const Player&, Device, Reference, double p);

struct SpeedMean {
  Estimate speed;           // geometric mean over challenges; the interval covers timings
  std::size_t answers = 0;  // correct and timed, one per challenge: the best attempt
};
// Over correct submissions only. Always show their number as well: a model that solves only
// challenges that are easy to speed up looks faster. Absent if there are none.
std::optional<SpeedMean> mean_speed(const Player&, Reference);

}  // namespace assay::compare
