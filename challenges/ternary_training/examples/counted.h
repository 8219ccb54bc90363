// For examples that put a model together from counts, in milliseconds and without a gradient, where
// a training is timed. Tokens have orthogonal codes; a token's own units in the first feed-forward
// block add what its table says, as a sum of a few ternary vectors.
#pragma once

#include <vector>

#include "with_trainer.h"

namespace {

class Counted {
 public:
  Counted(const tt_config& c, const std::uint16_t* docs, Index n_docs)
      : at_(c), weights_(static_cast<std::size_t>(at_.size)), pairs_(c.V * c.V), single_(c.V) {
    for (Index i = 0; i < n_docs * c.T; ++i) {
      if (i % c.T == 0) continue;
      pairs_[docs[i - 1] * c.V + docs[i]] += 1;
      single_[docs[i]] += 1;
      total_ += 1;
    }
    for (Index t = 0; t < c.V; ++t) {
      if (single_[t] > 0 || t == 0) used_.push_back(t);
    }
    std::fill(weights_.begin() + at_.matrices, weights_.end(), 1.0f);
    for (std::size_t i = 0; i < used_.size(); ++i) {
      for (Index d = 0; d < c.d; ++d) embedding(used_[i])[d] = code(i, d);
    }
  }
  // More tokens than there are codes and units: not this example's case.
  bool fits() const { return at_.c.d == 128 && at_.c.tied == 1 && used_.size() <= 32; }

  const std::vector<Index>& used() const { return used_; }
  double seen(Index t) const { return single_[t]; }
  double seen(Index before, Index t) const { return pairs_[before * at_.c.V + t]; }
  double share(Index t) const { return (single_[t] + 0.1) / total_; }
  double share_after(Index before, Index t) const {
    double all = 5;
    for (const Index u : used_) all += seen(before, u);
    return (seen(before, t) + 5 * share(t)) / all;
  }

  // After the token of this place among the used ones come tokens with these probabilities.
  void set_table(const std::vector<std::vector<double>>& share_of) {
    std::vector<std::vector<double>> logits;
    double most = 0;
    for (const std::vector<double>& row : share_of) {
      auto& l = logits.emplace_back();
      double squares = 0;
      for (const double p : row) l.push_back(std::log(p) + kUnused), squares += l.back() * l.back();
      most = std::max(most, squares);
    }
    // A code of no token's makes all results as long as the longest, so that the norm changes none.
    for (std::size_t i = 0; i < used_.size(); ++i) {
      double squares = 0;
      std::vector<double> target(128);
      for (std::size_t j = 0; j < used_.size(); ++j) {
        squares += logits[i][j] * logits[i][j];
        for (Index d = 0; d < 128; ++d) target[d] += logits[i][j] * code(j, d);
      }
      for (Index d = 0; d < 128; ++d)
        target[d] += std::sqrt(std::max(most - squares, 0.0)) * code(127, d) - code(i, d);
      for (int n = 0; n < 10; ++n) add_unit(i, target);
    }
    std::fill(weights_.begin() + at_.final_norm(), weights_.end(),
              static_cast<float>(std::sqrt(most) / 128));
  }

  // Attends to all tokens so far alike; what share of them is `token` stands in a code of its own.
  void look_for(std::size_t place) {
    const LayerAt l = at_.layer(0);
    const Index head = place % at_.narrow;
    for (Index d = 0; d < 128; ++d) {
      weights_[l.v + head * 128 + d] = code(place, d) / 128;
      weights_[l.o + d * at_.wide + head] = code(64 + place, d);
    }
  }
  // After the one token the other gets so much more for its share of what was seen.
  void add_copy(std::size_t after, std::size_t place, float gain) {
    const LayerAt l = at_.layer(0);
    for (Index d = 0; d < 128; ++d) {
      weights_[l.gate + unit_ * 128 + d] = kGate * code(after, d);
      weights_[l.up + unit_ * 128 + d] = gain / (128 * 128 * kGate) * code(64 + place, d);
      weights_[l.down + d * at_.c.ff + unit_] = code(place, d);
    }
    ++unit_;
  }

  void write(std::uint8_t* blob) const {
    for (Index i = 0; i < at_.matrices; i += kBlock, blob += kBytes) {
      float s = 0;
      for (Index j = i; j < i + kBlock; ++j) s = std::max(s, std::abs(weights_[j]));
      const unsigned bits = half_from(s);
      std::memset(blob, 0, kBytes);
      blob[0] = static_cast<std::uint8_t>(bits);
      blob[1] = static_cast<std::uint8_t>(bits >> 8);
      for (Index j = 0; j < kBlock; ++j) {
        const float w = weights_[i + j];
        const int c = w > 0 ? 2 : w < 0 ? 0 : 1;
        blob[2 + j / 4] = static_cast<std::uint8_t>(blob[2 + j / 4] | c << (j % 4 * 2));
      }
    }
    std::memcpy(blob, weights_.data() + at_.matrices, (at_.size - at_.matrices) * 4);
  }

 private:
  static constexpr double kUnused = 14;     // what a used token's logit has over one that never was
  static constexpr float kGate = 1.0f / 8;  // a unit's gate is 16 for its token, 0 for others

  // Rows of a Hadamard matrix.
  static float code(std::size_t i, Index d) {
    return __builtin_parity(static_cast<unsigned>(i) & static_cast<unsigned>(d)) ? -1.0f : 1.0f;
  }
  float* embedding(Index token) { return weights_.data() + token * at_.c.d; }

  // The ternary vector that takes most off the target.
  void add_unit(std::size_t token, std::vector<double>& target) {
    std::vector<double> sorted;
    for (const double v : target) sorted.push_back(std::abs(v));
    std::sort(sorted.rbegin(), sorted.rend());
    double sum = 0, best = -1, threshold = 0, size = 0;
    for (std::size_t n = 0; n < sorted.size(); ++n) {
      sum += sorted[n];
      const double gain = sum * sum / static_cast<double>(n + 1);
      if (gain <= best) continue;
      best = gain, threshold = sorted[n], size = sum / static_cast<double>(n + 1);
    }
    const LayerAt l = at_.layer(0);
    for (Index d = 0; d < 128; ++d) {
      const float sign = std::abs(target[d]) < threshold ? 0.0f : target[d] < 0 ? -1.0f : 1.0f;
      weights_[l.gate + unit_ * 128 + d] = kGate * code(token, d);
      weights_[l.up + unit_ * 128 + d] =
          static_cast<float>(size) / (128 * 128 * kGate) * code(token, d);
      weights_[l.down + d * at_.c.ff + unit_] = sign;
      target[d] -= size * sign;
    }
    ++unit_;
  }

  const Layout at_;
  std::vector<float> weights_;
  std::vector<double> pairs_, single_;
  std::vector<Index> used_;
  double total_ = 0;
  Index unit_ = 0;
};

}  // namespace

// At the end of the file: build(model) makes the tables. What is not timed is trained.
#define COUNT_WITH(build)                                                           \
  extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, \
                          int64_t n_docs, const tt_budget* budget, void* blob) {    \
    if (valid(c) && docs != nullptr && c->L > 2) {                                  \
      Counted model(*c, docs, n_docs);                                              \
      if (model.fits()) {                                                           \
        build(model);                                                               \
        model.write(static_cast<std::uint8_t*>(blob));                              \
        return ASSAY_OK;                                                            \
      }                                                                             \
    }                                                                               \
    return naive_tt_train(ctx, c, docs, n_docs, budget, blob);                      \
  }
