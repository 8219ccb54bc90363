// Intervals of figures computed from several scores. Pure: random draws come from a generator
// seeded by the scores themselves, so the same board gives the same intervals.
//
// Two things make a score uncertain. Each attempt has an interval from its timings (see
// measure/statistics.h). And a model does not answer the same way twice: several attempts at one
// challenge show by how much answers vary, a single one does not. These functions account for both
// if there are several attempts, and for timings only if there is one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "assay/results.h"
#include "measure/statistics.h"

namespace assay::compare {

inline constexpr int kBootstrapDraws = 1000;

// The mean over cells of the mean over each cell's attempts. Cells without attempts are left out;
// REQUIRES at least one attempt (throws std::invalid_argument).
//
// The interval comes from a two-level bootstrap (Davison and Hinkley 1997, section 3.8): the
// attempts of each cell are drawn with replacement, each at a quantile within its own interval. The
// deviation of a drawn mean is scaled by sqrt(n / (n - 1)), because the bootstrap underestimates
// the variance of few attempts. One quantile is drawn for all attempts together: a busy machine
// shifts all timings the same way, so treating them as independent would claim too much precision.
// If every cell has one attempt, the interval is exactly the mean of the lower and of the upper
// ends. Challenges are not resampled: the figure is about these challenges, not about others like
// them.
Estimate mean_over_cells(const std::vector<std::vector<Estimate>>& cells);

// a - b of two independent estimates, by the method of variance estimates recovery (Zou and Donner
// 2008): it uses the ends of both intervals, however lopsided they are.
Estimate difference(const Estimate& a, const Estimate& b);

// The 95 % interval of a share of `successes` in `trials` (Wilson 1927). Trials with unequal
// chances make it wider than necessary, never narrower. {0, 1} without trials. REQUIRES 0 <=
// successes <= trials.
Interval wilson(double successes, double trials);

// Whether the whole interval lies above (below) zero by more than the precision of tables, half a
// tenth of a point.
inline constexpr double kLeastShown = 0.05;
bool is_above_zero(const Estimate&);
bool is_below_zero(const Estimate&);

}  // namespace assay::compare
