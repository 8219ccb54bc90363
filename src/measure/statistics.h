// Robust statistics of timings. Everything is a pure function of its arguments: the bootstrap draws
// from a generator seeded by the data themselves, so the same samples give the same interval.
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

// The rounds of a timed case in which the machine was ours: par, whose work is the same in all of
// them, took at most kCalm times the lower quartile of its times. Two cores of a shared machine are
// one at times; then a program with two threads takes twice as long and one with a single thread
// does not, so that no ratio of the two means anything. A submission has no hand in par's times.
inline constexpr double kCalm = 1.35;
std::vector<TimingSample> calm_rounds(std::span<const TimingSample>);  // without those without par

Interval operator+(Interval, Interval);
Interval operator*(double nonnegative, Interval);
Interval clamp(Interval, double low, double high);
bool overlap(Interval, Interval);

}  // namespace assay
