// Sums as in a plain fp32 program: one term after the other.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>

namespace assay {

// out += p v, [rows, n] times [n, D]. Each element is one sequential sum, the least accurate that a
// correct program may use: similar terms all round the same way, so its error grows with their
// number and not with its root.
template <class P, class V, class Out>
void add_plain_product(const P& p, const V& v, Out& out) {
  constexpr std::int64_t kBlock = 64;  // rows of v that stay in cache
  for (std::int64_t begin = 0; begin < v.rows(); begin += kBlock) {
    const std::int64_t end = std::min<std::int64_t>(v.rows(), begin + kBlock);
    for (std::int64_t i = 0; i < out.rows(); ++i) {
      for (std::int64_t j = begin; j < end; ++j) out.row(i) += p(i, j) * v.row(j);
    }
  }
}

}  // namespace assay
