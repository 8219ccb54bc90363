#include "assay/tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "assay/dtype.h"

namespace assay {
namespace {

// Non-finite values must agree in kind: NaN with NaN, each infinity with itself.
bool same_kind(double got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::isfinite(got);
}

constexpr double kFlushed = 0x1p-106;

// Relative error with 0/0 = 0 and x/0 = infinity.
double ratio(double error, double scale) {
  if (scale > 0) return error / scale;
  return error == 0 ? 0 : HUGE_VAL;
}

// The absolute error. Differences small enough to come from flushing denormals count as 0, unless
// the value must be exact.
double difference(double y, double expected, double scale) {
  const double d = std::abs(y - expected);
  return d <= kFlushed && scale > 0 ? 0 : d;
}

// Sums and the largest relative error of one row.
struct Sums {
  double squares = 0;  // of the errors
  double norm = 0, scale_norm = 0;
  double componentwise = 0;  // NaN if any error is NaN
  std::size_t values = 0;

  double frobenius() const {
    // A row that cancels to a small part of its condition scale is judged relative to a quarter of
    // that scale, because the errors of many values average out; with fewer than 16 values less so.
    const double averaged = std::min(16.0, static_cast<double>(std::max<std::size_t>(values, 1)));
    return ratio(std::sqrt(squares), std::sqrt(std::max(norm, scale_norm / averaged)));
  }
};

Sums errors(std::span<const double> y, std::span<const double> expected,
            std::span<const double> scale) {
  Sums s;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!std::isfinite(expected[i])) continue;
    ++s.values;
    const double d = difference(y[i], expected[i], scale[i]);
    s.squares += d * d;
    s.norm += expected[i] * expected[i];
    s.scale_norm += scale[i] * scale[i];
    const double cw = ratio(d, scale[i]);
    if (!std::isnan(s.componentwise) && !(cw <= s.componentwise)) s.componentwise = cw;
  }
  return s;
}

// Computes both errors in one branch-free pass if every value in the row is finite and every scale
// positive, as in nearly all rows. Otherwise returns false and writes nothing.
bool plain_errors(std::span<const double> got, std::span<const double> expected,
                  std::span<const double> plain, std::span<const double> scale, Sums& mine,
                  Sums& reference) {
  constexpr std::size_t kLanes = 8;
  typedef double Vec __attribute__((vector_size(8 * kLanes)));
  const auto load = [](std::span<const double> v, std::size_t i, std::size_t n) {
    Vec lanes{};
    std::memcpy(&lanes, v.data() + i, n * sizeof(double));
    return lanes;
  };
  const auto absolute = [](Vec v) { return v < 0 ? -v : v; };
  const auto counted = [](Vec d) { return d > kFlushed ? d : Vec{}; };
  const auto larger = [](Vec a, Vec b) { return a > b ? a : b; };
  Vec squares{}, plain_squares{}, norm{}, scale_norm{}, most{}, plain_most{}, odd{};
  // c is the scale; `positive` is the same, but 1 past the row's end.
  const auto add = [&](Vec g, Vec e, Vec p, Vec c, Vec positive) {
    const Vec d = counted(absolute(g - e)), plain_d = counted(absolute(p - e));
    const Vec inverse = 1.0 / positive;
    squares += d * d;
    plain_squares += plain_d * plain_d;
    norm += e * e;
    scale_norm += c * c;
    most = larger(d * inverse, most);
    plain_most = larger(plain_d * inverse, plain_most);
    // Zero for finite values and a positive scale with a finite inverse, else NaN.
    odd += 0 * (g + e + p + inverse) + (positive > 0 ? Vec{} : Vec{} + std::nan(""));
  };
  std::size_t i = 0;
  for (; i + kLanes <= got.size(); i += kLanes) {
    const Vec c = load(scale, i, kLanes);
    add(load(got, i, kLanes), load(expected, i, kLanes), load(plain, i, kLanes), c, c);
  }
  if (const std::size_t rest = got.size() - i; rest > 0) {
    const Vec c = load(scale, i, rest);
    Vec positive = c;
    for (std::size_t k = rest; k < kLanes; ++k) positive[k] = 1;
    add(load(got, i, rest), load(expected, i, rest), load(plain, i, rest), c, positive);
  }
  Sums a, b;
  a.values = b.values = got.size();
  double any_odd = 0;
  for (std::size_t k = 0; k < kLanes; ++k) {
    a.squares += squares[k];
    b.squares += plain_squares[k];
    a.norm += norm[k];
    a.scale_norm += scale_norm[k];
    a.componentwise = std::max(a.componentwise, most[k]);
    b.componentwise = std::max(b.componentwise, plain_most[k]);
    any_odd += odd[k];
  }
  if (any_odd != 0) return false;
  b.norm = a.norm;
  b.scale_norm = a.scale_norm;
  mine = a;
  reference = b;
  return true;
}

// The column of the largest componentwise error.
std::int64_t worst_column(std::span<const double> y, std::span<const double> expected,
                          std::span<const double> scale) {
  std::int64_t worst = 0;
  double most = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!std::isfinite(expected[i])) continue;
    const double cw = ratio(difference(y[i], expected[i], scale[i]), scale[i]);
    if (cw <= most) continue;
    most = cw;
    worst = static_cast<std::int64_t>(i);
  }
  return worst;
}

}  // namespace

void fail(CheckResult& result, std::string detail) {
  if (result.pass) result.detail = std::move(detail);
  result.pass = false;
}

bool RowJudge::same_kinds(std::int64_t row, std::span<const double> got,
                          std::span<const double> expected) {
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
    return false;
  }
  return true;
}

void RowJudge::row(std::int64_t row, std::span<const double> got, std::span<const double> expected,
                   std::span<const double> plain, std::span<const double> scale) {
  Sums mine, reference;
  if (!plain_errors(got, expected, plain, scale, mine, reference)) {
    if (!same_kinds(row, got, expected)) return;
    mine = errors(got, expected, scale);
    reference = errors(plain, expected, scale);
  }
  const auto judge = [&](double error, double plain_error) {
    // A plain implementation that itself overflows is no reference.
    const double standard = std::isfinite(plain_error) ? plain_error : 0;
    const double bound = std::max(rule_.reference_factor * standard, rule_.floor);
    const double fraction = ratio(error, bound);
    if (worst_bound_ == 0 || !(fraction <= worst_)) {
      worst_ = fraction;
      worst_error_ = error;
      worst_bound_ = bound;
    }
    accuracy_ = std::max(accuracy_, error / std::max(standard, rule_.unit));
    return error <= bound;
  };
  const bool frobenius = judge(mine.frobenius(), reference.frobenius());
  const bool componentwise = judge(mine.componentwise, reference.componentwise);
  if (frobenius && componentwise) return;
  if (first_row_ < 0) {
    first_row_ = row;
    first_column_ = worst_column(got, expected, scale);
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
