// Intervals of figures that are made of several scores. Pure: whatever is drawn is drawn from a
// generator seeded by the scores themselves, so the same board gives the same intervals.
//
// Two things make a score uncertain. An attempt has an interval that comes from its timings (see
// measure/statistics.h). And a model would not answer the same way twice: several attempts at one
// challenge show by how much, one says nothing. What these functions return is about both where
// there are several attempts, and about timings alone where there is one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "assay/results.h"
#include "measure/statistics.h"

namespace assay::compare {

inline constexpr int kBootstrapDraws = 1000;

// The mean over cells of the mean over each cell's attempts. Cells without attempts are left out;
// REQUIRES one attempt at least (throws std::invalid_argument).
//
// The interval is that of a two-level bootstrap (Davison and Hinkley 1997, section 3.8): the
// attempts of each cell are drawn with replacement, each at a place within its own interval. The
// deviation of a drawn mean is widened by sqrt(n / (n - 1)), which makes up for the bootstrap's too
// small variance of few attempts. One place is drawn for all attempts together: a busy machine
// moves all timings the same way, and to take them as independent would claim too much. Where every
// cell has one attempt the interval is the mean of the lower and of the upper ends, exactly.
// Challenges are not drawn: the figure is about these, not about others like them.
Estimate mean_over_cells(const std::vector<std::vector<Estimate>>& cells);

// a - b of two independent estimates, by the method of variance estimates recovery (Zou and Donner
// 2008): from the ends of both intervals, however lopsided they are.
Estimate difference(const Estimate& a, const Estimate& b);

// The 95 % interval of a share of `successes` in `trials` (Wilson 1927). Trials of unlike chances
// make it wider than it had to be, never narrower. {0, 1} without trials. REQUIRES 0 <= successes
// <= trials.
Interval wilson(double successes, double trials);

// Whether the whole of the interval lies above (below) zero by more than tables show, half a tenth
// of a point.
inline constexpr double kLeastShown = 0.05;
bool is_above_zero(const Estimate&);
bool is_below_zero(const Estimate&);

}  // namespace assay::compare
