// Robust statistics of timings. Everything is a pure function of its arguments: the bootstrap uses
// a generator seeded by the data, so the same samples give the same interval.
#pragma once

#include <span>
#include <vector>

#include "assay/results.h"

namespace assay {

// Linear interpolation between order statistics (R's type 7). REQUIRES: values not empty, no NaN,
// 0 <= q <= 1; throws std::invalid_argument otherwise, as all functions here do.
double quantile(std::span<const double> values, double q);
double median(std::span<const double> values);

// exp(mean(log)). REQUIRES: every value positive.
double geometric_mean(std::span<const double> values);

struct Estimate {
  double value = 0;
  Interval interval;  // 95 %, contains value
};

// The median and its percentile bootstrap interval. The order of the values does not matter. Fewer
// than three values say nothing about spread: their interval is their range.
Estimate estimate_median(std::span<const double> values);

// The median of numerator[i] / denominator[i]. Pairing cancels whatever slowed both measurements of
// a repetition. REQUIRES: equal lengths, positive values.
Estimate estimate_ratio(std::span<const double> numerator, std::span<const double> denominator);

// The undisturbed rounds of a timed case: those in which par, whose work is always the same, took
// at most kCalm times the lower quartile of its times. On a shared machine, two cores are sometimes
// only one; a program with two threads then takes twice as long but a single-threaded one does not,
// so their ratio is meaningless. Submissions cannot influence par's times.
inline constexpr double kCalm = 1.35;
std::vector<TimingSample> calm_rounds(std::span<const TimingSample>);  // drops rounds without par

Interval operator+(Interval, Interval);
Interval operator*(double nonnegative, Interval);
Interval clamp(Interval, double low, double high);
bool overlap(Interval, Interval);

}  // namespace assay
