// Judges every row of a large matrix product at the cost of a few vectors (Freivalds): compares the
// returned rows times secret sign vectors with the same product of the factors.
//
// A row with error vector d gives d.r for signs r. A single wrong element shows its whole error
// whatever the signs are, and the mean square over the vectors is |d|^2 on average. For errors that
// do not depend on r, the chance that it exceeds t |d|^2 is at most (t exp(1 - t))^(vectors / 2).
// So an honest row never fails, and errors beyond sqrt(t) times the allowance fail except by luck.
// Knowing r would allow errors to be hidden, so r is drawn from a seed that no worker sees.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "assay/tolerance.h"

namespace assay::ternary_training {

inline constexpr std::size_t kSignVectors = 8;

// Row m of a [terms] times b [terms, columns]; a's values are strided.
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

  // Fails rows of `got` whose error exceeds sqrt(10) times what `rule` grants every row at least.
  void check(const char* name, const ToleranceRule& rule, std::span<const float> got,
             CheckResult&) const;

 private:
  using Vector = std::array<double, kSignVectors>;

  std::vector<Vector> signs_;     // [columns]
  std::vector<Vector> expected_;  // [rows]
  // [rows]: a lower bound of the norm of the condition scales: their sum over sqrt(columns).
  std::vector<double> scale_;
};

}  // namespace assay::ternary_training
