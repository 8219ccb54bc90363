// Judges the log-sum-exp that attention returns beside its output.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "assay/dtype.h"
#include "assay/tolerance.h"

namespace assay {

// Adds to `all` the judgement of one row. `name`: of the tensor, in messages. `floor`: the absolute
// error that is allowed besides a rounding of the value itself. A float near the value is the least
// that the plain result can be off by: where it happens to be nearer, it is no better than its
// neighbours.
inline void judge_log_sum_exp(std::string name, std::int64_t row, double got, double expected,
                              double plain, double floor, RowJudge& all) {
  const double size = std::isfinite(expected) ? std::abs(expected) : 0;
  RowJudge judge(std::move(name), {.reference_factor = 4,
                                   .floor = floor + size * kEps32,
                                   .unit = kEps32 * std::max(1.0, size)});
  // Shifted to an expected value of 1 with scale 1, which turns the rule into one on absolute
  // errors.
  const double shift = std::isfinite(expected) ? 1 - expected : 0;
  const double shifted[] = {got + shift}, right[] = {expected + shift},
               standard[] = {plain + shift}, one[] = {1.0};
  judge.row(row, shifted, right, standard, one);
  all.merge(judge);
}

}  // namespace assay
