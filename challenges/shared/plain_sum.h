// Sums as a plain fp32 program makes them: one term after the other.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

namespace assay {

// out += p v, [rows, n] times [n, D]. Each element is one sum from first to last, the least exact
// that a right program may have: terms that are all alike round the same way, so that its error
// grows with their number and not with the root of it.
template <class P, class V, class Out>
void add_plain_product(const P& p, const V& v, Out& out) {
  constexpr std::int64_t kBlock = 64;  // rows of v that stay in a cache
  for (std::int64_t begin = 0; begin < v.rows(); begin += kBlock) {
    const std::int64_t end = std::min<std::int64_t>(v.rows(), begin + kBlock);
    for (std::int64_t i = 0; i < out.rows(); ++i) {
      for (std::int64_t j = begin; j < end; ++j) out.row(i) += p(i, j) * v.row(j);
    }
  }
}

}  // namespace assay
