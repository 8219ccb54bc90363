// Generation with a cache of keys and values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "blocks.h"
#include "layout.h"
#include "matrices.h"
#include "memory.h"
#include "vectors.h"

namespace {

// A model that is given one token at a time. A token's work is one pass over all weights and over
// the keys and values of its document.
class Decoder {
 public:
  Decoder(assay_ctx* ctx, const Layout& at)
      : at_(at),
        c_(at.c),
        weights_(ctx, at.size),
        work_(ctx, 2 * at.d + at.qkv + at.wide + 3 * at.ff + c_.T + c_.V + c_.hd) {}
  bool ready() const { return weights_.ready() && work_.ready(); }

  void read(const std::uint8_t* blob) {
    for (Index i = 0; i < at_.matrices / kBlock; ++i)
      dequantize_block(blob + i * kBytes, weights_ + i * kBlock);
    std::memcpy(weights_ + at_.matrices, blob + at_.matrices / kBlock * kBytes,
                static_cast<std::size_t>(at_.size - at_.matrices) * 4);
    for (Index i = 0; i < c_.hd / 2; ++i) {
      frequencies_.push_back(
          std::pow(static_cast<double>(c_.theta), -2.0 * static_cast<double>(i) / c_.hd));
    }
  }

  // Takes a token in; the residual stream stays for logits(). The cache is [L, 2, Hkv, T, hd].
  void step(std::uint16_t token, Index position, float* cache) {
    const Index d = at_.d, ff = at_.ff, hd = c_.hd, T = c_.T, group = c_.Hq / c_.Hkv;
    float *x = work_, *h = x + d, *qkv = h + d, *a = qkv + at_.qkv, *gate_up = a + at_.wide,
          *s = gate_up + 2 * ff, *p = s + ff;
    float* turning = p + T + c_.V;
    for (Index i = 0; i < hd / 2; ++i) {
      const double angle =
          static_cast<double>(position) * frequencies_[static_cast<std::size_t>(i)];
      turning[i] = static_cast<float>(std::cos(angle));
      turning[hd / 2 + i] = static_cast<float>(std::sin(angle));
    }
    std::copy_n(weights_ + at_.embedding.offset + token * d, d, x);
    for (const LayerAt& layer : at_.layers) {
      norm(d, x, weights_ + layer.attention_norm, h);
      apply(layer.qkv, h, qkv);
      float *keys = cache, *values = cache + at_.narrow * T;
      cache += 2 * at_.narrow * T;
      for (Index j = 0; j < c_.Hkv; ++j) {
        float* k = qkv + at_.wide + j * hd;
        turn(k, weights_ + layer.key_norm, turning);
        std::copy_n(k, hd, keys + (j * T + position) * hd);
        std::copy_n(k + at_.narrow, hd, values + (j * T + position) * hd);
      }
      for (Index j = 0; j < c_.Hq; ++j) {
        turn(qkv + j * hd, weights_ + layer.query_norm, turning);
        attend(qkv + j * hd, keys + j / group * T * hd, values + j / group * T * hd, position + 1,
               p, a + j * hd);
      }
      apply(layer.o, a, h);
      for (Index i = 0; i < d; ++i) x[i] += h[i];
      norm(d, x, weights_ + layer.ff_norm, h);
      apply(layer.gate_up, h, gate_up);
      for (Index i = 0; i < ff; ++i)
        s[i] = gate_up[i] / (1 + std::exp(-gate_up[i])) * gate_up[ff + i];
      apply(layer.down, s, h);
      for (Index i = 0; i < d; ++i) x[i] += h[i];
    }
  }

  std::uint16_t best() {
    float *x = work_, *h = x + at_.d,
          *logits = work_ + 2 * at_.d + at_.qkv + at_.wide + 3 * at_.ff + c_.T;
    norm(at_.d, x, weights_ + at_.final_norm, h);
    apply(at_.head, h, logits);
    return static_cast<std::uint16_t>(std::max_element(logits, logits + c_.V) - logits);
  }

 private:
  void apply(const MatrixAt& m, const float* x, float* y) const {
    for (Index r = 0; r < m.rows; ++r) y[r] = dot(weights_ + m.offset + r * m.cols, x, m.cols);
  }

  void norm(Index n, const float* x, const float* w, float* y) const {
    const float r = 1 / std::sqrt(dot(x, x, n) / static_cast<float>(n) + c_.eps);
    for (Index i = 0; i < n; ++i) y[i] = x[i] * r * w[i];
  }

  void turn(float* x, const float* w, const float* turning) const {
    const Index half = c_.hd / 2;
    norm(c_.hd, x, w, x);
    for (Index i = 0; i < half; ++i) {
      const float a = x[i], b = x[i + half], cos = turning[i], sin = turning[half + i];
      x[i] = a * cos - b * sin;
      x[i + half] = a * sin + b * cos;
    }
  }

  void attend(const float* q, const float* keys, const float* values, Index n, float* p,
              float* out) const {
    const Index hd = c_.hd;
    const float scale = 1 / std::sqrt(static_cast<float>(hd));
    float most = -std::numeric_limits<float>::infinity(), total = 0;
    for (Index u = 0; u < n; ++u) most = std::max(most, p[u] = dot(q, keys + u * hd, hd) * scale);
    for (Index u = 0; u < n; ++u) total += p[u] = std::exp(p[u] - most);
    std::fill_n(out, hd, 0.0f);
    for (Index u = 0; u < n; ++u) {
      const float share = p[u] / total;
      for (Index i = 0; i < hd; ++i) out[i] += share * values[u * hd + i];
    }
  }

  const Layout& at_;
  const tt_config& c_;
  Buffer weights_, work_;
  std::vector<double> frequencies_;
};

}  // namespace
