#include "assay/tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/dtype.h"

namespace assay {
namespace {

// Non-finite values must agree in kind: NaN with NaN, each infinity with itself.
bool same_kind(double got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::isfinite(got);
}

// Relative error with 0/0 = 0 and x/0 = infinity.
double ratio(double error, double scale) {
  if (scale > 0) return error / scale;
  return error == 0 ? 0 : HUGE_VAL;
}

struct Errors {
  double frobenius = 0, componentwise = 0;
  std::int64_t worst = -1;  // column of the componentwise maximum
};

Errors errors(std::span<const double> y, std::span<const double> expected,
              std::span<const double> scale) {
  Errors e;
  double sum = 0, norm = 0, scale_norm = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!std::isfinite(expected[i])) continue;
    const double d = std::abs(y[i] - expected[i]);
    sum += d * d;
    norm += expected[i] * expected[i];
    scale_norm += scale[i] * scale[i];
    const double cw = ratio(d, scale[i]);
    if (!(cw <= e.componentwise) || e.worst < 0) {
      e.componentwise = cw;
      e.worst = static_cast<std::int64_t>(i);
    }
  }
  // A row that cancels to a small part of its condition scale is judged relative to a quarter of it.
  e.frobenius = ratio(std::sqrt(sum), std::sqrt(std::max(norm, scale_norm / 16)));
  return e;
}

}  // namespace

void fail(CheckResult& result, std::string detail) {
  if (result.pass) result.detail = std::move(detail);
  result.pass = false;
}

void RowJudge::row(std::int64_t row, std::span<const double> got, std::span<const double> expected,
                   std::span<const double> plain, std::span<const double> scale) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (same_kind(got[i], expected[i])) continue;
    if (first_row_ < 0) {
      first_row_ = row;
      first_column_ = static_cast<std::int64_t>(i);
      first_got_ = got[i];
      first_expected_ = expected[i];
      first_why_ = "non-finite values differ";
    }
    pass_ = false;
    return;
  }
  const Errors mine = errors(got, expected, scale);
  const Errors reference = errors(plain, expected, scale);
  const auto judge = [&](double error, double plain_error) {
    // A plain implementation that itself overflows sets no standard.
    const double standard = std::isfinite(plain_error) ? plain_error : 0;
    const double bound = std::max(rule_.reference_factor * standard, rule_.floor);
    const double fraction = ratio(error, bound);
    if (worst_bound_ == 0 || !(fraction <= worst_)) {
      worst_ = fraction;
      worst_error_ = error;
      worst_bound_ = bound;
    }
    accuracy_ = std::max(accuracy_, error / std::max(standard, kEps32));
    return error <= bound;
  };
  const bool frobenius = judge(mine.frobenius, reference.frobenius);
  const bool componentwise = judge(mine.componentwise, reference.componentwise);
  if (frobenius && componentwise) return;
  if (first_row_ < 0) {
    first_row_ = row;
    first_column_ = std::max<std::int64_t>(mine.worst, 0);
    first_got_ = got[first_column_];
    first_expected_ = expected[first_column_];
    first_why_ = frobenius ? "element error too large" : "row error too large";
  }
  pass_ = false;
}

void RowJudge::merge(const RowJudge& other) {
  if (!other.pass_ && (pass_ || other.first_row_ < first_row_)) {
    first_row_ = other.first_row_;
    first_column_ = other.first_column_;
    first_got_ = other.first_got_;
    first_expected_ = other.first_expected_;
    first_why_ = other.first_why_;
  }
  pass_ = pass_ && other.pass_;
  accuracy_ = std::max(accuracy_, other.accuracy_);
  if (!(other.worst_ <= worst_)) {
    worst_ = other.worst_;
    worst_error_ = other.worst_error_;
    worst_bound_ = other.worst_bound_;
  }
}

void RowJudge::add_to(CheckResult& result) const {
  if (!pass_) {
    fail(result, fmt::format("{}[{},{}]: got {:.9g}, expected {:.9g} ({})", tensor_, first_row_,
                             first_column_, first_got_, first_expected_, first_why_));
  }
  const bool worse = !result.bound || !(worst_ <= *result.error / *result.bound);
  if (worst_bound_ > 0 && worse) {
    result.error = worst_error_;
    result.bound = worst_bound_;
  }
  result.accuracy = std::max(result.accuracy.value_or(0), accuracy_);
}

template <class T>
void check_equal(CheckResult& result, const char* tensor, std::span<const T> got,
                 std::span<const T> expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got[i] == expected[i]) continue;
    return fail(result, fmt::format("{}[{}]: got {}, expected {}", tensor, i, got[i], expected[i]));
  }
}

template void check_equal(CheckResult&, const char*, std::span<const std::int32_t>,
                          std::span<const std::int32_t>);
template void check_equal(CheckResult&, const char*, std::span<const std::int64_t>,
                          std::span<const std::int64_t>);
template void check_equal(CheckResult&, const char*, std::span<const std::uint64_t>,
                          std::span<const std::uint64_t>);
template void check_equal(CheckResult&, const char*, std::span<const std::uint8_t>,
                          std::span<const std::uint8_t>);
template void check_equal(CheckResult&, const char*, std::span<const std::uint16_t>,
                          std::span<const std::uint16_t>);

}  // namespace assay
