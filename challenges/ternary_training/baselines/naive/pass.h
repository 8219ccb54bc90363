// One document through the model and back.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "layout.h"
#include "matrices.h"
#include "memory.h"

namespace {

// What one document leaves behind on its way forward, and the gradients on the way back. All [T,
// ...].
class Pass {
 public:
  Pass(assay_ctx* ctx, const Layout& layout)
      : at_(layout),
        c_(at_.c),
        T_(c_.T),
        kept_(ctx, floats_per_layer() * c_.L),
        per_layer_(floats_per_layer()),
        work_(ctx, T_ * (10 * c_.d + 2 * at_.wide + 2 * at_.narrow + 4 * c_.ff + c_.V + c_.T + 1)) {
    float* p = work_;
    for (float** piece : {&x_, &h_, &dx_, &dh_}) *piece = std::exchange(p, p + T_ * c_.d);
    r_ = std::exchange(p, p + T_);
    for (float** piece : {&dgate_, &dup_, &ds_}) *piece = std::exchange(p, p + T_ * c_.ff);
    for (float** piece : {&da_, &dq_}) *piece = std::exchange(p, p + T_ * at_.wide);
    for (float** piece : {&dk_, &dv_}) *piece = std::exchange(p, p + T_ * at_.narrow);
    scores_ = std::exchange(p, p + T_ * T_);
    logits_ = p;
  }
  virtual ~Pass() = default;
  bool ready() const { return kept_.data != nullptr && work_.data != nullptr; }

  // Logits of a document, [T, V].
  const float* run(const float* w, const std::uint16_t* tokens) {
    for (Index t = 0; t < T_; ++t) std::copy_n(w + tokens[t] * c_.d, c_.d, x_ + t * c_.d);
    for (Index l = 0; l < c_.L; ++l) layer_forward(w, l);
    rms_forward(T_, c_.d, c_.eps, x_, w + at_.final_norm(), h_, r_);
    forward(T_, c_.V, c_.d, h_, w + at_.head(), logits_);
    return logits_;
  }

  // The document's mean loss; its gradient is added to g.
  double train(const float* w, const std::uint16_t* tokens, float* g) {
    run(w, tokens);
    const double loss = loss_and_its_gradient(tokens);
    std::fill_n(dx_, T_ * c_.d, 0.0f);
    std::fill_n(dh_, T_ * c_.d, 0.0f);
    head_gradient(g);
    backward_input(T_, c_.V, c_.d, logits_, w + at_.head(), dh_);
    rms_backward(T_, c_.d, x_, w + at_.final_norm(), r_, dh_, dx_, g + at_.final_norm());
    for (Index l = c_.L; l-- > 0;) layer_backward(w, l, g);
    embedding_gradient(tokens, g);
    return loss;
  }

 protected:
  // Single steps of the model, overridable one by one.

  // Turns every head of every row by its position's angles; direction -1 turns back.
  virtual void rope(Index heads, float* x, float direction) const {
    const Index half = c_.hd / 2;
    for (Index i = 0; i < half; ++i) {
      const double frequency =
          std::pow(static_cast<double>(c_.theta), -2.0 * static_cast<double>(i) / c_.hd);
      for (Index t = 0; t < T_; ++t) {
        const auto cos = static_cast<float>(std::cos(static_cast<double>(t) * frequency));
        const auto sin =
            direction * static_cast<float>(std::sin(static_cast<double>(t) * frequency));
        for (Index h = 0; h < heads; ++h) {
          float* v = x + (t * heads + h) * c_.hd + i;
          const float a = v[0], b = v[half];
          v[0] = a * cos - b * sin;
          v[half] = a * sin + b * cos;
        }
      }
    }
  }

  virtual void head_norm(Index heads, const float* x, const float* w, float* y, float* r) const {
    rms_forward(T_ * heads, c_.hd, c_.eps, x, w, y, r);
  }

  virtual void head_norm_backward(Index heads, const float* x, const float* w, const float* r,
                                  const float* dy, float* dx, float* dw) const {
    rms_backward(T_ * heads, c_.hd, x, w, r, dy, dx, dw);
  }

  virtual Index key_head(Index head) const { return head / (c_.Hq / c_.Hkv); }

  // The token that the logits at t are to predict; there is none at T - 1.
  virtual Index target(const std::uint16_t* tokens, Index t) const { return tokens[t + 1]; }

  virtual void head_gradient(float* g) const {
    backward_weight(T_, c_.V, c_.d, logits_, h_, g + at_.head());
  }

  virtual void embedding_gradient(const std::uint16_t* tokens, float* g) const {
    for (Index t = 0; t < T_; ++t) add_scaled(g + tokens[t] * c_.d, 1, dx_ + t * c_.d, c_.d);
  }

  const Layout at_;
  const tt_config& c_;
  const Index T_;
  Buffer kept_;

 private:
  // Kept for the way back: inputs of both halves and their norms, queries and keys before and after
  // norm and rotation, values, probabilities, what attention returns, the gates and their product.
  struct Kept {
    float *x, *h, *q, *k, *v, *turned_q, *turned_k, *p, *a, *x2, *h2, *gate, *up, *s, *r, *r2, *rq,
        *rk;
  };

  Index floats_per_layer() const {
    return T_ * (4 * c_.d + 3 * at_.wide + 3 * at_.narrow + 3 * Index{c_.ff} + c_.Hq * T_ + 2 +
                 c_.Hq + c_.Hkv);
  }

  Kept kept(Index l) const {
    float* p = kept_ + l * per_layer_;
    const auto take = [&](Index n) { return std::exchange(p, p + T_ * n); };
    const Index d = c_.d, ff = c_.ff, wide = at_.wide, narrow = at_.narrow;
    Kept k{};
    k.x = take(d), k.h = take(d), k.q = take(wide), k.k = take(narrow), k.v = take(narrow);
    k.turned_q = take(wide), k.turned_k = take(narrow), k.p = take(c_.Hq * T_), k.a = take(wide);
    k.x2 = take(d), k.h2 = take(d), k.gate = take(ff), k.up = take(ff), k.s = take(ff);
    k.r = take(1), k.r2 = take(1), k.rq = take(c_.Hq), k.rk = take(c_.Hkv);
    return k;
  }

  void layer_forward(const float* w, Index l) {
    const LayerAt at = at_.layer(l);
    const Kept s = kept(l);
    const Index d = c_.d, ff = c_.ff;
    std::copy_n(x_, T_ * d, s.x);
    rms_forward(T_, d, c_.eps, s.x, w + at.attention_norm, s.h, s.r);
    forward(T_, at_.wide, d, s.h, w + at.q, s.q);
    forward(T_, at_.narrow, d, s.h, w + at.k, s.k);
    forward(T_, at_.narrow, d, s.h, w + at.v, s.v);
    head_norm(c_.Hq, s.q, w + at.query_norm, s.turned_q, s.rq);
    head_norm(c_.Hkv, s.k, w + at.key_norm, s.turned_k, s.rk);
    rope(c_.Hq, s.turned_q, 1);
    rope(c_.Hkv, s.turned_k, 1);
    attention_forward(s);
    forward(T_, d, at_.wide, s.a, w + at.o, s.x2);
    add_scaled(s.x2, 1, s.x, T_ * d);
    rms_forward(T_, d, c_.eps, s.x2, w + at.ff_norm, s.h2, s.r2);
    forward(T_, ff, d, s.h2, w + at.gate, s.gate);
    forward(T_, ff, d, s.h2, w + at.up, s.up);
    for (Index i = 0; i < T_ * ff; ++i) s.s[i] = s.gate[i] / (1 + std::exp(-s.gate[i])) * s.up[i];
    forward(T_, d, ff, s.s, w + at.down, x_);
    add_scaled(x_, 1, s.x2, T_ * d);
  }

  void attention_forward(const Kept& s) {
    const Index hd = c_.hd;
    const float scale = 1 / std::sqrt(static_cast<float>(hd));
    std::fill_n(s.a, T_ * at_.wide, 0.0f);
    for (Index j = 0; j < c_.Hq; ++j) {
      for (Index t = 0; t < T_; ++t) {
        float* p = s.p + (j * T_ + t) * T_;
        const float* q = s.turned_q + t * at_.wide + j * hd;
        float most = -std::numeric_limits<float>::infinity(), sum = 0;
        for (Index u = 0; u <= t; ++u) {
          p[u] = dot(q, s.turned_k + u * at_.narrow + key_head(j) * hd, hd) * scale;
          most = std::max(most, p[u]);
        }
        for (Index u = 0; u <= t; ++u) sum += p[u] = std::exp(p[u] - most);
        for (Index u = 0; u <= t; ++u) {
          p[u] /= sum;
          add_scaled(s.a + t * at_.wide + j * hd, p[u], s.v + u * at_.narrow + key_head(j) * hd,
                     hd);
        }
      }
    }
  }

  void attention_backward(const Kept& s) {
    const Index hd = c_.hd;
    const float scale = 1 / std::sqrt(static_cast<float>(hd));
    std::fill_n(dq_, T_ * at_.wide, 0.0f);
    std::fill_n(dk_, T_ * at_.narrow, 0.0f);
    std::fill_n(dv_, T_ * at_.narrow, 0.0f);
    for (Index j = 0; j < c_.Hq; ++j) {
      for (Index t = 0; t < T_; ++t) {
        const float* p = s.p + (j * T_ + t) * T_;
        const float* da = da_ + t * at_.wide + j * hd;
        float projection = 0;
        for (Index u = 0; u <= t; ++u) {
          const Index key = u * at_.narrow + key_head(j) * hd;
          scores_[u] = dot(da, s.v + key, hd);
          projection += p[u] * scores_[u];
          add_scaled(dv_ + key, p[u], da, hd);
        }
        for (Index u = 0; u <= t; ++u) {
          const Index key = u * at_.narrow + key_head(j) * hd, query = t * at_.wide + j * hd;
          const float ds = p[u] * (scores_[u] - projection) * scale;
          add_scaled(dq_ + query, ds, s.turned_k + key, hd);
          add_scaled(dk_ + key, ds, s.turned_q + query, hd);
        }
      }
    }
  }

  // dx_ is the gradient of the layer's output, then of its input.
  void layer_backward(const float* w, Index l, float* g) {
    const LayerAt at = at_.layer(l);
    const Kept s = kept(l);
    const Index d = c_.d, ff = c_.ff, wide = at_.wide, narrow = at_.narrow;
    backward_weight(T_, d, ff, dx_, s.s, g + at.down);
    std::fill_n(ds_, T_ * ff, 0.0f);
    backward_input(T_, d, ff, dx_, w + at.down, ds_);
    for (Index i = 0; i < T_ * ff; ++i) {
      const float sigmoid = 1 / (1 + std::exp(-s.gate[i]));
      dup_[i] = ds_[i] * s.gate[i] * sigmoid;
      dgate_[i] = ds_[i] * s.up[i] * sigmoid * (1 + s.gate[i] * (1 - sigmoid));
    }
    backward_weight(T_, ff, d, dgate_, s.h2, g + at.gate);
    backward_weight(T_, ff, d, dup_, s.h2, g + at.up);
    std::fill_n(dh_, T_ * d, 0.0f);
    backward_input(T_, ff, d, dgate_, w + at.gate, dh_);
    backward_input(T_, ff, d, dup_, w + at.up, dh_);
    rms_backward(T_, d, s.x2, w + at.ff_norm, s.r2, dh_, dx_, g + at.ff_norm);

    backward_weight(T_, d, wide, dx_, s.a, g + at.o);
    std::fill_n(da_, T_ * wide, 0.0f);
    backward_input(T_, d, wide, dx_, w + at.o, da_);
    attention_backward(s);
    rope(c_.Hq, dq_, -1);
    rope(c_.Hkv, dk_, -1);
    std::fill_n(da_, T_ * wide, 0.0f);
    head_norm_backward(c_.Hq, s.q, w + at.query_norm, s.rq, dq_, da_, g + at.query_norm);
    std::fill_n(dq_, T_ * narrow, 0.0f);
    head_norm_backward(c_.Hkv, s.k, w + at.key_norm, s.rk, dk_, dq_, g + at.key_norm);
    backward_weight(T_, wide, d, da_, s.h, g + at.q);
    backward_weight(T_, narrow, d, dq_, s.h, g + at.k);
    backward_weight(T_, narrow, d, dv_, s.h, g + at.v);
    std::fill_n(dh_, T_ * d, 0.0f);
    backward_input(T_, wide, d, da_, w + at.q, dh_);
    backward_input(T_, narrow, d, dq_, w + at.k, dh_);
    backward_input(T_, narrow, d, dv_, w + at.v, dh_);
    rms_backward(T_, d, s.x, w + at.attention_norm, s.r, dh_, dx_, g + at.attention_norm);
  }

  // Turns the logits into the gradient of the mean loss over positions 0 .. T - 2.
  double loss_and_its_gradient(const std::uint16_t* tokens) {
    double loss = 0;
    const auto share = 1 / static_cast<float>(T_ - 1);
    for (Index t = 0; t < T_; ++t) {
      float* row = logits_ + t * c_.V;
      if (t + 1 == T_) {
        std::fill_n(row, c_.V, 0.0f);
        break;
      }
      const Index next = target(tokens, t);
      const float most = *std::max_element(row, row + c_.V), wanted = row[next];
      float sum = 0;
      for (Index v = 0; v < c_.V; ++v) sum += row[v] = std::exp(row[v] - most);
      for (Index v = 0; v < c_.V; ++v) row[v] *= share / sum;
      row[next] -= share;
      loss += share * (std::log(sum) + most - wanted);
    }
    return loss;
  }

  const Index per_layer_;
  Buffer work_;
  float *x_, *h_, *dx_, *dh_, *r_, *dgate_, *dup_, *ds_, *da_, *dq_, *dk_, *dv_, *scores_, *logits_;
};

}  // namespace
