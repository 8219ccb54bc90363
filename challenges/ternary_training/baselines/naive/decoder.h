// Generation with a cache of keys and values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "blocks.h"
#include "layout.h"
#include "matrices.h"
#include "memory.h"

namespace {

// A model that is given one token at a time; keys and values of those before stand in a cache [L,
// 2, T, Hkv hd].
class Decoder {
 public:
  Decoder(assay_ctx* ctx, const Layout& layout)
      : at_(layout),
        weights_(ctx, at_.size),
        work_(ctx, 3 * at_.c.d + 2 * at_.wide + 2 * Index{at_.c.ff} + at_.c.T + at_.c.V) {}
  virtual ~Decoder() = default;
  bool ready() const { return weights_.data != nullptr && work_.data != nullptr; }

  void read(const std::uint8_t* blob) {
    for (Index i = 0; i < at_.matrices / kBlock; ++i)
      dequantize_block(blob + i * kBytes, weights_ + i * kBlock);
    std::memcpy(weights_ + at_.matrices, blob + at_.matrices / kBlock * kBytes,
                static_cast<std::size_t>(at_.size - at_.matrices) * 4);
  }

  // Logits [V] after the token at `position`.
  const float* step(std::uint16_t token, Index position, float* cache) {
    const tt_config& c = at_.c;
    const Index d = c.d, ff = c.ff, narrow = at_.narrow;
    float *x = work_, *h = x + d, *back = h + d, *q = back + d, *a = q + at_.wide,
          *gate = a + at_.wide, *up = gate + ff, *scores = up + ff, *logits = scores + c.T, r;
    std::copy_n(weights_ + token * d, d, x);
    for (Index l = 0; l < c.L; ++l) {
      const LayerAt at = at_.layer(l);
      float *keys = cache + l * 2 * c.T * narrow, *values = keys + c.T * narrow;
      float *k = keys + position * narrow, *v = values + position * narrow;
      rms_forward(1, d, c.eps, x, weights_ + at.attention_norm, h, &r);
      forward(1, at_.wide, d, h, weights_ + at.q, q);
      forward(1, narrow, d, h, weights_ + at.k, k);
      forward(1, narrow, d, h, weights_ + at.v, v);
      for (Index j = 0; j < c.Hq; ++j)
        turn(q + j * c.hd, weights_ + at.query_norm, angle_position(position));
      for (Index j = 0; j < c.Hkv; ++j)
        turn(k + j * c.hd, weights_ + at.key_norm, angle_position(position));
      for (Index j = 0; j < c.Hq; ++j) {
        const Index head = j / (c.Hq / c.Hkv) * c.hd;
        attend(q + j * c.hd, keys + head, values + head, position + 1, scores, a + j * c.hd);
      }
      forward(1, d, at_.wide, a, weights_ + at.o, back);
      add_scaled(x, 1, back, d);
      rms_forward(1, d, c.eps, x, weights_ + at.ff_norm, h, &r);
      forward(1, ff, d, h, weights_ + at.gate, gate);
      forward(1, ff, d, h, weights_ + at.up, up);
      for (Index i = 0; i < ff; ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      forward(1, d, ff, gate, weights_ + at.down, back);
      add_scaled(x, 1, back, d);
    }
    rms_forward(1, d, c.eps, x, weights_ + at_.final_norm(), h, &r);
    forward(1, c.V, d, h, weights_ + at_.head(), logits);
    return logits;
  }

 protected:
  virtual Index angle_position(Index position) const { return position; }

 private:
  // A head's norm and rotation, in place.
  void turn(float* x, const float* norm, Index position) const {
    const Index hd = at_.c.hd, half = hd / 2;
    float r;
    rms_forward(1, hd, at_.c.eps, x, norm, x, &r);
    for (Index i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(position) *
          std::pow(static_cast<double>(at_.c.theta), -2.0 * static_cast<double>(i) / at_.c.hd);
      const auto cos = static_cast<float>(std::cos(angle)),
                 sin = static_cast<float>(std::sin(angle));
      const float a = x[i], b = x[i + half];
      x[i] = a * cos - b * sin;
      x[i + half] = a * sin + b * cos;
    }
  }

  void attend(const float* q, const float* keys, const float* values, Index n, float* p,
              float* out) const {
    const Index hd = at_.c.hd;
    const float scale = 1 / std::sqrt(static_cast<float>(hd));
    float most = -std::numeric_limits<float>::infinity(), sum = 0;
    for (Index u = 0; u < n; ++u)
      most = std::max(most, p[u] = dot(q, keys + u * at_.narrow, hd) * scale);
    for (Index u = 0; u < n; ++u) sum += p[u] = std::exp(p[u] - most);
    std::fill_n(out, hd, 0.0f);
    for (Index u = 0; u < n; ++u) add_scaled(out, p[u] / sum, values + u * at_.narrow, hd);
  }

  const Layout at_;
  Buffer weights_, work_;
};

template <class T>
int generate_with(assay_ctx* ctx, const tt_config& c, const std::uint8_t* blob,
                  const tt_generation& g, const std::uint16_t* tokens, float* state,
                  std::uint16_t* generated) {
  const Layout at(c);
  T decoder(ctx, at);
  if (!decoder.ready()) return ASSAY_ENOMEM;
  decoder.read(blob);
  for (Index doc = 0; doc < g.n_docs; ++doc) {
    float* cache = state + doc * c.L * 2 * c.T * at.narrow;
    Index position = g.position;
    const float* logits = nullptr;
    for (Index i = 0; i < g.n_new; ++i)
      logits = decoder.step(tokens[doc * g.n_new + i], position++, cache);
    for (Index i = 0; i < g.steps; ++i) {
      const auto best = static_cast<std::uint16_t>(std::max_element(logits, logits + c.V) - logits);
      generated[doc * g.steps + i] = best;
      logits = decoder.step(best, position++, cache);
    }
  }
  return ASSAY_OK;
}

}  // namespace
