#include "compare/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace assay::compare {
namespace {

void require_pairs(std::span<const double> x, std::span<const double> y) {
  const auto finite = [](double v) { return std::isfinite(v); };
  if (x.size() == y.size() && std::ranges::all_of(x, finite) && std::ranges::all_of(y, finite))
    return;
  throw std::invalid_argument("rank correlation of lists that do not pair, or are not finite");
}

int sign(double v) { return (v > 0) - (v < 0); }

// Ranks from 1; equal values share the mean of their places.
std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> rank(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i)
      rank[order[i]] = static_cast<double>(begin + 1 + end) / 2;
  }
  return rank;
}

}  // namespace

std::optional<double> kendall_tau_b(std::span<const double> x, std::span<const double> y) {
  require_pairs(x, y);
  double balance = 0, apart_in_x = 0, apart_in_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = i + 1; j < x.size(); ++j) {
      const int in_x = sign(x[i] - x[j]), in_y = sign(y[i] - y[j]);
      balance += in_x * in_y;
      apart_in_x += in_x != 0;
      apart_in_y += in_y != 0;
    }
  }
  if (apart_in_x == 0 || apart_in_y == 0) return {};
  return balance / (std::sqrt(apart_in_x) * std::sqrt(apart_in_y));
}

std::optional<double> spearman_rho(std::span<const double> x, std::span<const double> y) {
  require_pairs(x, y);
  const std::vector<double> a = ranks(x), b = ranks(y);
  const double mean = (static_cast<double>(x.size()) + 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  if (aa == 0 || bb == 0) return {};
  return ab / (std::sqrt(aa) * std::sqrt(bb));
}

}  // namespace assay::compare
