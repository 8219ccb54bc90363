// Rows of fp32 and bf16, and the sum of their exponentials in one sweep.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "vectors.h"

namespace {

// Sums exp((x - max) / T) of a row, in units of 2.
struct Sum {
  float max = -kInf;
  double sum = 0;  // NaN when the row holds NaN
};

// A row as groups of kGroup floats; behind the end stands -inf.
template <class Element>
class Row;

template <>
class Row<float> {
 public:
  Row(const float* x, std::int64_t n) : x_(x), n_(n) {}
  float at(std::int64_t j) const { return x_[j]; }
  void prefetch(std::int64_t j) const {
    constexpr std::int64_t kAhead = 2048;
    constexpr std::int64_t kLine = 16;
    for (std::int64_t i = 0; i < kGroup; i += kLine) __builtin_prefetch(x_ + j + kAhead + i);
  }
  const float* group(std::int64_t j, float* local) const {
    if (j + kGroup <= n_) return x_ + j;
    std::fill(std::copy(x_ + j, x_ + n_, local), local + kGroup, -kInf);
    return local;
  }

 private:
  const float* x_;
  std::int64_t n_;
};

template <>
class Row<std::uint16_t> {
 public:
  Row(const std::uint16_t* x, std::int64_t n) : x_(x), n_(n) {}
  float at(std::int64_t j) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x_[j]) << 16);
  }
  void prefetch(std::int64_t) const {}
  const float* group(std::int64_t j, float* local) const {
    const std::int64_t n = std::min(kGroup, n_ - j);
    if (n == kGroup) {
      for (std::int64_t i = 0; i < kGroup; ++i) local[i] = at(j + i);
    } else {
      for (std::int64_t i = 0; i < n; ++i) local[i] = at(j + i);
      std::fill(local + n, local + kGroup, -kInf);
    }
    return local;
  }

 private:
  const std::uint16_t* x_;
  std::int64_t n_;
};

struct Block {
  Vec maxima;
  double sum;  // of 2^((x - max) scale)
};

// n groups from column `first` on; leaves the maxima of each in `maxima`.
template <class R>
Block sweep(const R& row, std::int64_t first, std::int64_t n, float max, float scale, Vec* maxima) {
  alignas(64) float local[kGroup];
  const float reference = max > -kInf ? max : 0.0f;
  Vec best = splat(-kInf), sums[4] = {};
  for (std::int64_t g = 0; g < n; ++g) {
    row.prefetch(first + g * kGroup);
    const float* x = row.group(first + g * kGroup, local);
    Vec group = splat(-kInf);
#pragma GCC unroll 8
    for (int i = 0; i < kGroupVectors; ++i) {
      const Vec v = load(x + i * kLanes);
      group = larger(v, group);
      sums[i % 4] += exp2_vector((v - reference) * scale);
    }
    maxima[g] = group;
    best = larger(group, best);
  }
  const Vec total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += total[i];
  return {best, sum};
}

// Adds n groups from column `first` on.
template <class R>
void add_block(Sum& s, const R& row, std::int64_t first, std::int64_t n, float scale, Vec* maxima) {
  constexpr float kFar = 8;  // powers of two that a term may exceed 1 without much rounding
  if (first == 0) {
    alignas(64) float local[kGroup];
    const float* x = row.group(0, local);
    Vec best = load(x);
    for (int i = 1; i < kGroupVectors; ++i) best = larger(load(x + i * kLanes), best);
    s.max = horizontal_max(larger(best, splat(-kInf)));
  }
  Block block = sweep(row, first, n, s.max, scale, maxima);
  const float max = horizontal_max(block.maxima);
  if (!(max > s.max)) {
    s.sum += block.sum;
    return;
  }
  if (!((max - s.max) * scale <= kFar)) {
    block.sum = sweep(row, first, n, max, scale, maxima).sum;
    // Before the first finite value the sum is 0, or NaN for good.
    if (s.max > -kInf) s.sum *= std::exp2((static_cast<double>(s.max) - max) * scale);
    s.sum += block.sum;
  } else {
    s.sum = (s.sum + block.sum) * std::exp2((static_cast<double>(s.max) - max) * scale);
  }
  s.max = max;
}

}  // namespace
