#include "projections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/parallel.h"
#include "assay/random.h"
#include "assay/size.h"

namespace assay::ternary_training {
namespace {

constexpr double kMostOfAllowed = 10;  // t in projections.h: chance 2e-12 for a row that uses its
                                       // whole allowance

void add_times(std::array<double, kSignVectors>& sum, double a,
               const std::array<double, kSignVectors>& v) {
  for (std::size_t i = 0; i < kSignVectors; ++i) sum[i] += a * v[i];
}

}  // namespace

Projections::Projections(const Product& p, std::uint64_t secret)
    : signs_(to_size(p.columns)), expected_(to_size(p.rows)), scale_(expected_.size()) {
  Random random(secret);
  for (Vector& v : signs_) {
    const std::uint64_t bits = random.next();
    for (std::size_t i = 0; i < kSignVectors; ++i) v[i] = (bits >> (8 * i + 7) & 1) != 0 ? 1 : -1;
  }
  std::vector<Vector> of_b(to_size(p.terms));
  std::vector<double> absolute(of_b.size());
  parallel_for(p.terms, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      Vector sum{};
      double total = 0;
      for (std::int64_t n = 0; n < p.columns; ++n) {
        const auto v = static_cast<double>(p.b[k * p.columns + n]);
        add_times(sum, v, signs_[to_size(n)]);
        total += std::abs(v);
      }
      of_b[to_size(k)] = sum;
      absolute[to_size(k)] = total;
    }
  });
  parallel_for(p.rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t m = begin; m < end; ++m) {
      Vector sum{};
      double total = 0;
      for (std::int64_t k = 0; k < p.terms; ++k) {
        const auto v = static_cast<double>(p.a[m * p.row_step + k * p.term_step]);
        add_times(sum, v, of_b[to_size(k)]);
        total += std::abs(v) * absolute[to_size(k)];
      }
      expected_[to_size(m)] = sum;
      scale_[to_size(m)] = total / std::sqrt(static_cast<double>(p.columns));
    }
  });
}

void Projections::check(const char* name, const ToleranceRule& rule, std::span<const float> got,
                        CheckResult& result) const {
  const std::size_t columns = signs_.size();
  std::vector<double> errors(expected_.size());  // root mean squares over the vectors
  parallel_for(static_cast<std::int64_t>(errors.size()), 16,
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto m = to_size(begin); m < to_size(end); ++m) {
                   Vector sum{};
                   for (std::size_t n = 0; n < columns; ++n)
                     add_times(sum, static_cast<double>(got[m * columns + n]), signs_[n]);
                   double squares = 0;
                   for (std::size_t i = 0; i < kSignVectors; ++i)
                     squares += std::pow(sum[i] - expected_[m][i], 2);
                   errors[m] = std::sqrt(squares / kSignVectors);
                 }
               });
  for (std::size_t m = 0; m < errors.size(); ++m) {
    // A row's bound by the common rule: its floor times a quarter of the norm of the condition
    // scales.
    const double bound = std::sqrt(kMostOfAllowed) * rule.floor * scale_[m] / 4;
    if (errors[m] <= bound) continue;  // not so for NaN
    return fail(result, fmt::format("{} row {}: its products with {} secret vectors are off by "
                                    "{:.3g}, at most {:.3g} is allowed",
                                    name, m, kSignVectors, errors[m], bound));
  }
}

}  // namespace assay::ternary_training
