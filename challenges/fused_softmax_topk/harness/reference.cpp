// The exact selection and the fp64 log-sum-exp of every row.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "assay/parallel.h"
#include "assay/size.h"
#include "trusted.h"

namespace assay::fused_softmax_topk {
namespace {

// Whether column a comes before column b: larger value, then lower index. -0 equals +0.
struct Before {
  const float* x;
  bool operator()(std::int32_t a, std::int32_t b) const {
    return x[a] > x[b] || (x[a] == x[b] && a < b);
  }
};

// The first K columns in order, by a heap whose top is the last column kept.
void select(const float* x, std::int64_t V, std::int32_t K, std::int32_t* idx) {
  const Before before{x};
  const auto n = static_cast<std::int32_t>(std::min<std::int64_t>(K, V));
  std::fill(idx, idx + K, -1);
  if (n == 0) return;
  for (std::int32_t j = 0; j < n; ++j) idx[j] = j;
  std::make_heap(idx, idx + n, before);
  for (std::int32_t j = n; j < V; ++j) {
    if (!(x[j] > x[idx[0]])) continue;  // on a tie the kept column has the lower index
    std::pop_heap(idx, idx + n, before);
    idx[n - 1] = j;
    std::push_heap(idx, idx + n, before);
  }
  std::sort_heap(idx, idx + n, before);
}

struct Extremes {
  float max = -std::numeric_limits<float>::infinity();
  bool poisoned = false;
};

Extremes extremes(const float* x, std::int64_t V) {
  Extremes e;
  bool nan = false;
  for (std::int64_t j = 0; j < V; ++j) {
    e.max = std::max(e.max, x[j]);
    nan |= std::isnan(x[j]);
  }
  e.poisoned = nan || e.max == std::numeric_limits<float>::infinity();
  return e;
}

// Relative to max / T.
double log_sum_exp(const float* x, std::int64_t V, float max, double temperature) {
  constexpr std::int64_t kBlock = 1024;
  double sum = 0;
  for (std::int64_t j = 0; j < V; j += kBlock) {
    const auto block = Eigen::Map<const Eigen::ArrayXf>(x + j, std::min(kBlock, V - j));
    sum += ((block.cast<double>() - static_cast<double>(max)) / temperature).exp().sum();
  }
  return std::log(sum);
}

// A plain fp32 implementation: two passes, sums over blocks of 64. Relative to max / T.
float log_sum_exp32(const float* x, std::int64_t V, float max, float temperature) {
  constexpr std::int64_t kBlock = 64;
  float sum = 0;
  for (std::int64_t j = 0; j < V; j += kBlock) {
    const auto block = Eigen::Map<const Eigen::ArrayXf>(x + j, std::min(kBlock, V - j));
    sum += ((block - max) / temperature).exp().sum();
  }
  return std::log(sum);
}

RowReference examine(const Shape& s, const float* x) {
  RowReference row;
  const Extremes e = extremes(x, s.V);
  row.poisoned = e.poisoned;
  row.max = e.max;
  if (e.poisoned) return row;
  if (!std::isfinite(e.max)) {  // empty, or only -inf
    row.lse = -std::numeric_limits<double>::infinity();
    return row;
  }
  row.log_sum = log_sum_exp(x, s.V, e.max, s.temperature);
  row.lse = static_cast<double>(e.max) / s.temperature + row.log_sum;
  row.log_sum32 = log_sum_exp32(x, s.V, e.max, s.temperature);
  return row;
}

}  // namespace

std::unique_ptr<TopKReference> make_reference(const Shape& s, const void* logits) {
  auto reference = std::make_unique<TopKReference>();
  reference->rows.resize(to_size(s.rows));
  reference->idx.resize(to_size(s.rows * s.K));
  parallel_for(s.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch;
    for (std::int64_t r = begin; r < end; ++r) {
      const float* x = row_values(s, logits, r, scratch);
      RowReference& row = reference->rows[to_size(r)];
      row = examine(s, x);
      std::int32_t* idx = reference->idx.data() + r * s.K;
      if (row.poisoned) {
        std::fill(idx, idx + s.K, -1);
      } else {
        select(x, s.V, s.K, idx);
      }
    }
  });
  return reference;
}

}  // namespace assay::fused_softmax_topk
