// Attention scores at unpredictable levels, for timed inputs: even a submission that knows how they
// are drawn can skip nothing.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "assay/random.h"
#include "assay/size.h"

namespace assay::attention {

// A direction of length 1 in D dimensions.
inline void draw_direction(Random& random, std::vector<float>& u) {
  double norm = 0;
  for (float& x : u) {
    x = static_cast<float>(random.normal());
    norm += double{x} * x;
  }
  for (float& x : u) x /= static_cast<float>(std::sqrt(norm));
}

// Gives queries and keys a share of a direction that each key head has. Half of the queries get
// none. Each of the others sees all keys around its own level, from -156 to 156, with `nearer` of four
// keys up to a quarter nearer to 0. So exp(s) without the row's maximum overflows in one row of
// eight, and is 0 for all keys in one of thirty; and a row's weights span more than a short
// approximation of exp covers.
class ScoreLevels {
 public:
  // `scale` is that of the scores, scale q.k; with 0 there are no levels. Where few keys are nearer
  // and there are tens of thousands, the others may each be too small to change a plain sum in fp32
  // but not so together.
  ScoreLevels(std::uint64_t seed, std::int64_t key_heads, std::int64_t D, double scale,
              std::int64_t nearer = 1)
      : random_(seed), per_key_(scale == 0 ? 0 : kLevel / (kQuery * scale)), nearer_(nearer) {
    for (std::int64_t h = 0; h < key_heads; ++h)
      draw_direction(random_, directions_.emplace_back(to_size(D)));
  }

  void key(std::int64_t head, float* k) {
    const double share = random_.below(4) < nearer_ ? random_.uniform(kNearest, 1) : 1;
    add(head, share * per_key_, k);
  }

  // For a query that reads the keys of `head`.
  void query(std::int64_t head, float* q) {
    if (random_.below(2) == 0) return;
    const double level = random_.uniform(kLeast, kMost) * (random_.below(2) == 0 ? 1 : -1);
    if (per_key_ != 0) add(head, level * kQuery, q);
  }

 private:
  static constexpr double kLevel = 130, kQuery = 8, kLeast = 0.2, kMost = 1.2, kNearest = 0.75;

  void add(std::int64_t head, double factor, float* to) const {
    const std::vector<float>& u = directions_[to_size(head)];
    for (std::size_t d = 0; d < u.size(); ++d) to[d] += static_cast<float>(factor) * u[d];
  }

  Random random_;
  double per_key_;
  std::int64_t nearer_;
  std::vector<std::vector<float>> directions_;
};

}  // namespace assay::attention
