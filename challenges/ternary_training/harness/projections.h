// Judges every row of a large matrix product for the price of a few vectors (Freivalds): the rows
// of what was returned times secret vectors of signs, against the same of the factors.
//
// A row whose elements are off by d gives d.r for signs r: a single wrong element shows with its
// whole error whatever the signs are, and the mean square over the vectors is |d|^2 on average. For
// errors that do not depend on r, the chance that it exceeds t |d|^2 is at most
// (t exp(1 - t))^(vectors / 2), so an honest row never fails, and errors beyond sqrt(t) times what
// a row may have always do but by luck. Whoever knows r can hide errors from it: r is drawn from
// what no worker sees.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "assay/tolerance.h"

namespace assay::ternary_training {

inline constexpr std::size_t kSignVectors = 8;

// Row m of a [terms] times b [terms, columns], where a's values lie so far apart.
struct Product {
  std::int64_t rows = 0, terms = 0, columns = 0;
  const float* a = nullptr;
  std::int64_t row_step = 0, term_step = 0;
  const float* b = nullptr;
};

class Projections {
 public:
  Projections() = default;
  Projections(const Product&, std::uint64_t secret);

  // Fails rows of `got` whose error exceeds what `rule` allows every row at least, sqrt(10) times.
  void check(const char* name, const ToleranceRule& rule, std::span<const float> got,
             CheckResult&) const;

 private:
  using Vector = std::array<double, kSignVectors>;

  std::vector<Vector> signs_;     // [columns]
  std::vector<Vector> expected_;  // [rows]
  // [rows]: a lower bound of the norm of the condition scales: their sum over the root of columns.
  std::vector<double> scale_;
};

}  // namespace assay::ternary_training
