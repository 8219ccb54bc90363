// What the size of attention scores costs in accuracy.
#pragma once

#include <cmath>
#include <cstdint>

namespace assay {

// The roundings of a score in units of 2^-24, relative to the largest that its row can have: a plain
// sum of D products, and scores may be in units of log 2.
inline double score_roundings(std::int64_t D) { return 6 + static_cast<double>(D) / 16; }

// The roundings of a row of attention's output over `keys` keys, likewise, where the scores' own
// cost `conditioning` times as much as one. The square root admits plain sums over all keys, and the
// 64th of them those that lose what is too small to change the sum by itself. Conditioning that is
// not finite belongs to scores that overflow, and grants nothing.
inline double attention_roundings(double keys, std::int64_t D, double conditioning) {
  const double n = std::fmax(keys, 1);
  return 16 + 4 * std::log2(n) + std::fmax(std::sqrt(n) / 2, n / 64) +
         score_roundings(D) * (std::isfinite(conditioning) ? conditioning : 0);
}

}  // namespace assay
