// The best K continuations of a row among those met before.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rows.h"

namespace {

// A continuation.
struct Candidate {
  double acc;
  std::int32_t parent, token;
};

// The best K continuations met so far, best first, earlier ones first among equals.
class Best {
 public:
  Best(Candidate* list, std::int64_t K, std::int64_t n) : list_(list), K_(K), n_(n) {}

  double least() const { return n_ < K_ ? -kInf : list_[K_ - 1].acc; }
  std::int64_t size() const { return n_; }

  void insert(const Candidate& c) {  // c.acc > least()
    std::int64_t at = n_ < K_ ? n_++ : K_ - 1;
    for (; at > 0 && c.acc > list_[at - 1].acc; --at) list_[at] = list_[at - 1];
    list_[at] = c;
  }

 private:
  Candidate* list_;
  std::int64_t K_, n_;
};

// A float that no value is above unless base + value may be above `least`.
float limit_for(double least, double base) {
  const double difference = least - base;
  if (!(difference > -kInf)) return -std::numeric_limits<float>::infinity();
  const double safe = difference - 1e-15 * (std::abs(least) + std::abs(base));
  const auto limit = static_cast<float>(safe);
  return static_cast<double>(limit) > safe
             ? std::nextafterf(limit, -std::numeric_limits<float>::infinity())
             : limit;
}

// Tokens that may not follow a beam: few.
struct Banned {
  std::int32_t* tokens;
  std::int64_t n = 0;

  void add(std::int32_t token) { tokens[n++] = token; }
  bool has(std::int32_t token) const {
    for (std::int64_t i = 0; i < n; ++i) {
      if (tokens[i] == token) return true;
    }
    return false;
  }
};

void scan(const float* x, std::int32_t begin, std::int32_t end, const Banned& banned, double base,
          std::int32_t parent, Best& best, float& limit) {
  for (std::int32_t v = begin; v < end; ++v) {
    const float value = x[v - begin];
    if (!(value > limit) || banned.has(v)) continue;
    const double acc = base + static_cast<double>(value);
    if (!(acc > best.least())) continue;
    best.insert({acc, parent, v});
    limit = limit_for(best.least(), base);
  }
}

// Adds the continuations of one beam.
template <class Row>
void select_row(const Row& row, std::int32_t V, const Banned& banned, double base,
                std::int32_t parent, Best& best) {
  alignas(64) float buffer[kBlock];
  float limit = limit_for(best.least(), base);
  std::int32_t v = 0;
  for (; v + kBlock <= V; v += kBlock) {
    const float* x = row.block(v, kBlock, buffer);
    if (any_above(x, limit)) scan(x, v, v + kBlock, banned, base, parent, best, limit);
  }
  scan(row.block(v, V - v, buffer), v, V, banned, base, parent, best, limit);
}

template <class Row>
double log_sum_exp(const Row& row, std::int32_t V) {
  alignas(64) float buffer[kBlock];
  const auto each_block = [&](const auto& visit) {
    for (std::int32_t v = 0; v < V; v += kBlock) {
      const std::int32_t n = std::min(kBlock, V - v);
      const float* x = row.block(v, n, buffer);
      visit(x, n);
    }
  };
  float most = -std::numeric_limits<float>::infinity();
  each_block(
      [&](const float* x, std::int32_t n) { most = std::max(most, *std::max_element(x, x + n)); });
  if (!(most > -std::numeric_limits<float>::infinity())) return 0;
  double sum = 0;
  each_block([&](const float* x, std::int32_t n) {
    for (std::int32_t v = 0; v < n; ++v)
      sum += std::exp(static_cast<double>(x[v]) - static_cast<double>(most));
  });
  return static_cast<double>(most) + std::log(sum);
}

}  // namespace
