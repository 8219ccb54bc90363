// The common rule for judging floating-point outputs (row = last dimension):
//
//   E_fro = ||y - y*|| / max(||y*||, ||c|| / min(4, sqrt(n)))   per row of n finite values
//   E_cw  = max_i |y_i - y*_i| / c_i      c_i: condition scale, the sum of absolute terms of y*_i
//   pass  : both E <= max(4 E(ref32), C eps32)                  fp32
//           both E <= max(2 E(refbf), C 2^-9)                   bf16
//
// y* is the fp64 reference on the rounded inputs; ref32 (refbf) is the harness's plain fp32
// (bf16-storage) implementation. A row that cancels is judged by its scale. Errors of many values
// average out, so the row is held to a quarter of what one value may be off. NaN and Inf must be
// exactly where y* has them. Comparisons are written so that a NaN error fails. Where c_i > 0, a
// difference of at most 2^-106 is ignored: hardware may flush anything below 2^-126, the smallest
// normal float, to 0. That includes weights of a sum whose other factors add up to less than 2^20.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "assay/challenge.h"

namespace assay {

struct ToleranceRule {
  double reference_factor = 4;  // 4 for fp32, 2 for bf16
  double floor = 0;             // C * eps32 or C * 2^-9
  double unit = kEps32;         // the least error that the plain result is taken to have
};

// Judges rows one by one and remembers the worst. Not thread-safe: use one per thread and merge.
class RowJudge {
 public:
  RowJudge(std::string tensor, ToleranceRule rule) : tensor_(std::move(tensor)), rule_(rule) {}

  // got: the submission's row, widened to double; expected: y*; plain: ref32's row; scale: c_i. All
  // have the same length; scale may be 0 where the value must be exact. `row` names the row in
  // messages. An element whose expected value is NaN or Inf must be matched in kind (and sign).
  void row(std::int64_t row, std::span<const double> got, std::span<const double> expected,
           std::span<const double> plain, std::span<const double> scale);

  void merge(const RowJudge& other);

  // Adds this tensor's verdict to `result`: pass, worst error and bound, accuracy, first mismatch.
  void add_to(CheckResult& result) const;

  bool pass() const { return pass_; }

 private:
  // Whether non-finite values are where they should be; records the first that is not.
  bool same_kinds(std::int64_t row, std::span<const double> got, std::span<const double> expected);

  std::string tensor_;
  ToleranceRule rule_;
  bool pass_ = true;
  double worst_ = 0, worst_error_ = 0, worst_bound_ = 0;  // worst error / bound
  double accuracy_ = 0;  // worst ratio to ref32, whose error is taken as at least the rule's unit
  std::int64_t first_row_ = -1, first_column_ = -1;
  double first_got_ = 0, first_expected_ = 0;
  std::string first_why_;
};

// Adds an exact comparison of integers; the first difference fails the result.
template <class T>
void check_equal(CheckResult& result, const char* tensor, std::span<const T> got,
                 std::span<const T> expected);

// Records a failure with `detail` unless one is already recorded.
void fail(CheckResult& result, std::string detail);

}  // namespace assay
