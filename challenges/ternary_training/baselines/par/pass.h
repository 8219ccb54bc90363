// One document through the model and back, all of it products of matrices.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "layout.h"
#include "matrices.h"
#include "memory.h"
#include "vectors.h"

namespace {

// Weights as the blocks say, and packed.
struct Weights {
  const float *plain, *packed;
};

// One document through the model and back. Arrays are [T, ...].
class Pass {
 public:
  Pass(assay_ctx* ctx, const Layout& at)
      : at_(at), c_(at.c), T_(at.c.T), memory_(ctx, lay_out(nullptr)) {
    if (ready()) lay_out(memory_);
    const Index half = c_.hd / 2;
    for (Index i = 0; ready() && i < half; ++i) {
      const double frequency =
          std::pow(static_cast<double>(c_.theta), -2.0 * static_cast<double>(i) / c_.hd);
      for (Index t = 0; t < T_; ++t) {
        cos_[t * half + i] = static_cast<float>(std::cos(static_cast<double>(t) * frequency));
        sin_[t * half + i] = static_cast<float>(std::sin(static_cast<double>(t) * frequency));
      }
    }
  }
  bool ready() const { return memory_.ready(); }

  const float* run(const Weights& w, const std::uint16_t* tokens) {
    for (Index t = 0; t < T_; ++t) {
      std::memcpy(x_ + t * at_.d, w.plain + at_.embedding.offset + tokens[t] * at_.d,
                  static_cast<std::size_t>(at_.d) * 4);
    }
    for (std::size_t l = 0; l < at_.layers.size(); ++l) layer_forward(w, at_.layers[l], kept_[l]);
    rms(T_, at_.d, x_, at_.d, w.plain + at_.final_norm, h_, at_.d, r_);
    apply(w, at_.head, h_, logits_, false);
    return logits_;
  }

  // The gradient of the document's mean loss: that of the norms, that of the embedded tokens, and
  // what the matrices' are products of.
  void train(const Weights& w, const std::uint16_t* tokens) {
    run(w, tokens);
    losses_to_gradients(tokens);
    std::fill_n(norms_, at_.size - at_.matrices, 0.0f);
    apply_back(w, at_.head, logits_, c_.V, dh_, false);
    rms_back(T_, at_.d, x_, at_.d, w.plain + at_.final_norm, r_, dh_, at_.d,
             dx_of(at_.layers.size()), at_.d, norm(at_.final_norm));
    for (std::size_t l = at_.layers.size(); l-- > 0;)
      layer_backward(w, at_.layers[l], kept_[l], dx_of(l + 1), dx_of(l));
  }

  const float* norm_gradients() const { return norms_; }  // in the layout's order
  const float* embedded_gradient() const { return dx_; }  // [T, d]

  // The gradient of a matrix W is the sum over tokens of dy x^T: dy [T, rows], x [T, cols]. In the
  // order of Layout::each_matrix.
  struct Operands {
    const float *dy, *x;
  };
  const std::vector<Operands>& operands() const { return operands_; }

 private:
  // dx is the gradient of the layer's output, dx2 that of what its second half is given.
  struct Kept {
    float *x, *h, *qkv, *turned, *p, *a, *x2, *h2, *gate_up, *s, *r, *r2, *rq, *rk;
    float *dx, *dx2, *dgate_up, *dqkv;
  };

  // The gradient of layer l's input, which is the output of the one before.
  float* dx_of(std::size_t l) const { return l == 0 ? dx_ : kept_[l - 1].dx; }
  float* norm(Index offset) const { return norms_ + (offset - at_.matrices); }

  // Hands out memory, or with null counts it.
  Index lay_out(float* memory) {
    Index used = 0;
    const auto take = [&](Index n) {
      float* p = memory != nullptr ? memory + used : nullptr;
      used += (n + 15) / 16 * 16;
      return p;
    };
    const Index d = at_.d, ff = at_.ff, qkv = at_.qkv, wide = at_.wide, turned = wide + at_.narrow;
    kept_.clear();
    for (Index l = 0; l < c_.L; ++l) {
      Kept k{};
      k.x = take(T_ * d), k.h = take(T_ * d), k.qkv = take(T_ * qkv), k.turned = take(T_ * turned);
      k.p = take(c_.Hq * T_ * T_), k.a = take(T_ * wide), k.x2 = take(T_ * d), k.h2 = take(T_ * d);
      k.gate_up = take(T_ * 2 * ff), k.s = take(T_ * ff), k.r = take(T_), k.r2 = take(T_);
      k.rq = take(T_ * c_.Hq), k.rk = take(T_ * c_.Hkv);
      k.dx = take(T_ * d), k.dx2 = take(T_ * d);
      k.dgate_up = take(T_ * 2 * ff), k.dqkv = take(T_ * qkv);
      kept_.push_back(k);
    }
    x_ = take(T_ * d), h_ = take(T_ * d), dx_ = take(T_ * d), dh_ = take(T_ * d), r_ = take(T_);
    logits_ = take(T_ * c_.V), ds_ = take(T_ * ff), da_ = take(T_ * wide);
    dturned_ = take(T_ * turned), scores_ = take(T_ * T_), norms_ = take(at_.size - at_.matrices);
    const Index widest = std::max({d, ff, wide, std::max<Index>(T_, c_.hd)});
    packed_ = take(std::max(T_ * rounded(widest), rounded(T_) * widest));
    cos_ = take(T_ * c_.hd / 2), sin_ = take(T_ * c_.hd / 2);
    operands_.assign(1, Operands{logits_, h_});
    for (const Kept& k : kept_) {
      for (const Operands o : {Operands{k.dqkv, k.h}, Operands{k.dx2, k.a},
                               Operands{k.dgate_up, k.h2}, Operands{k.dx, k.s}})
        operands_.push_back(o);
    }
    return used;
  }

  // y (+)= x W^T
  void apply(const Weights& w, const MatrixAt& m, const float* x, float* y, bool add) {
    multiply(T_, m.rows, m.cols, x, m.cols, 1, w.packed + m.forward, y, m.rows, add);
  }
  // dx (+)= dy W
  void apply_back(const Weights& w, const MatrixAt& m, const float* dy, Index ld, float* dx,
                  bool add) {
    multiply(T_, m.cols, m.rows, dy, ld, 1, w.packed + m.backward, dx, m.cols, add);
  }
  // Rows of n, ldx and ldy apart.
  void rms(Index rows, Index n, const float* x, Index ldx, const float* w, float* y, Index ldy,
           float* r) const {
    for (Index i = 0; i < rows; ++i, x += ldx, y += ldy) {
      const float q = r[i] = 1 / std::sqrt(dot(x, x, n) / static_cast<float>(n) + c_.eps);
      for (Index j = 0; j < n; ++j) y[j] = x[j] * q * w[j];
    }
  }

  // `base`, where there is one, is added to dx, and like it.
  void rms_back(Index rows, Index n, const float* x, Index ldx, const float* w, const float* r,
                const float* dy, Index ldy, float* dx, Index lddx, float* dw,
                const float* base = nullptr) const {
    for (Index i = 0; i < rows; ++i, x += ldx, dy += ldy, dx += lddx) {
      const float q = r[i];
      Vec part{};
      Index j = 0;
      for (; j + kLanes <= n; j += kLanes) {
        const Vec v = load(dy + j) * load(x + j);
        part += v * load(w + j);
        store(dw + j, load(dw + j) + v * q);
      }
      float projection = sum(part);
      for (; j < n; ++j) {
        const float v = dy[j] * x[j];
        projection += v * w[j];
        dw[j] += v * q;
      }
      projection *= q * q / static_cast<float>(n);
      for (j = 0; j < n; ++j) dx[j] = q * (dy[j] * w[j] - x[j] * projection);
      if (base == nullptr) continue;
      for (j = 0; j < n; ++j) dx[j] += base[j];
      base += lddx;
    }
  }

  // Heads of all rows, ld apart, by their position's angles; direction -1 turns back.
  void rope(Index heads, float* x, Index ld, float direction) const {
    const Index half = c_.hd / 2;
    for (Index t = 0; t < T_; ++t) {
      const float *cos = cos_ + t * half, *sin = sin_ + t * half;
      for (Index h = 0; h < heads; ++h) {
        float *a = x + t * ld + h * c_.hd, *b = a + half;
        for (Index i = 0; i < half; ++i) {
          const float u = a[i], v = b[i], s = direction * sin[i];
          a[i] = u * cos[i] - v * s;
          b[i] = u * s + v * cos[i];
        }
      }
    }
  }

  // Norms of the heads; each position's norm factors stand together.
  void norm_heads(const Weights& w, const LayerAt& at, const Kept& k) const {
    const Index hd = c_.hd, turned = at_.wide + at_.narrow;
    for (Index t = 0; t < T_; ++t) {
      rms(c_.Hq, hd, k.qkv + t * at_.qkv, hd, w.plain + at.query_norm, k.turned + t * turned, hd,
          k.rq + t * c_.Hq);
      rms(c_.Hkv, hd, k.qkv + t * at_.qkv + at_.wide, hd, w.plain + at.key_norm,
          k.turned + t * turned + at_.wide, hd, k.rk + t * c_.Hkv);
    }
    rope(c_.Hq + c_.Hkv, k.turned, turned, 1);
  }

  void norm_heads_back(const Weights& w, const LayerAt& at, const Kept& k) const {
    const Index hd = c_.hd, turned = at_.wide + at_.narrow;
    rope(c_.Hq + c_.Hkv, dturned_, turned, -1);
    for (Index t = 0; t < T_; ++t) {
      rms_back(c_.Hq, hd, k.qkv + t * at_.qkv, hd, w.plain + at.query_norm, k.rq + t * c_.Hq,
               dturned_ + t * turned, hd, k.dqkv + t * at_.qkv, hd, norm(at.query_norm));
      rms_back(c_.Hkv, hd, k.qkv + t * at_.qkv + at_.wide, hd, w.plain + at.key_norm,
               k.rk + t * c_.Hkv, dturned_ + t * turned + at_.wide, hd,
               k.dqkv + t * at_.qkv + at_.wide, hd, norm(at.key_norm));
    }
  }

  // Rows [t, t + n) see the keys before t + n: one slab of the causal half.
  template <class F>
  void slabs(F f) const {
    for (Index t = 0; t < T_; t += kPanel) f(t, std::min(kPanel, T_ - t), std::min(T_, t + kPanel));
  }

  void softmax_rows(float* p, Index first, Index n, Index seen) const {
    const float scale = 1 / std::sqrt(static_cast<float>(c_.hd));
    for (Index t = first; t < first + n; ++t) {
      float* row = p + t * T_;
      float most = row[0], total = 0;
      for (Index u = 0; u <= t; ++u) most = std::max(most, row[u]);
      map(t + 1, row, row, [&](Vec v) { return exp((v - most) * scale); });
      for (Index u = 0; u <= t; ++u) total += row[u];
      for (Index u = 0; u <= t; ++u) row[u] *= 1 / total;
      for (Index u = t + 1; u < seen; ++u) row[u] = 0;
    }
  }

  void attention(const Kept& k) {
    const Index hd = c_.hd, turned = at_.wide + at_.narrow, group = c_.Hq / c_.Hkv;
    for (Index j = 0; j < c_.Hq; ++j) {
      float* p = k.p + j * T_ * T_;
      pack_transposed(hd, T_, k.turned + at_.wide + j / group * hd, turned, packed_);
      slabs([&](Index t, Index n, Index seen) {
        multiply(n, seen, hd, k.turned + t * turned + j * hd, turned, 1, packed_, p + t * T_, T_,
                 false);
        softmax_rows(p, t, n, seen);
      });
      pack(T_, hd, k.qkv + at_.wide + at_.narrow + j / group * hd, at_.qkv, packed_);
      slabs([&](Index t, Index n, Index seen) {
        multiply(n, hd, seen, p + t * T_, T_, 1, packed_, k.a + t * at_.wide + j * hd, at_.wide,
                 false, T_);
      });
    }
  }

  // p (dp - p . dp) / sqrt(hd) for the rows of a slab, in place of dp.
  void softmax_rows_back(const float* p, float* dp, Index first, Index n, Index seen) const {
    const float scale = 1 / std::sqrt(static_cast<float>(c_.hd));
    for (Index t = first; t < first + n; ++t) {
      const float* row = p + t * T_;
      float* out = dp + t * T_;
      const float projection = dot(row, out, seen);
      for (Index u = 0; u < seen; ++u) out[u] = row[u] * (out[u] - projection) * scale;
    }
  }

  void attention_back(const Kept& k) {
    const Index hd = c_.hd, turned = at_.wide + at_.narrow, group = c_.Hq / c_.Hkv;
    const Index values = at_.wide + at_.narrow;
    for (Index t = 0; t < T_; ++t) {
      std::fill_n(dturned_ + t * turned + at_.wide, at_.narrow, 0.0f);
      std::fill_n(k.dqkv + t * at_.qkv + values, at_.narrow, 0.0f);
    }
    for (Index j = 0; j < c_.Hq; ++j) {
      const float* p = k.p + j * T_ * T_;
      const Index kv = j / group * hd;
      // dv += p^T da
      pack(T_, hd, da_ + j * hd, at_.wide, packed_);
      slabs([&](Index t, Index n, Index) {
        multiply(n, hd, T_ - t, p + t * T_ + t, 1, T_, packed_, k.dqkv + t * at_.qkv + values + kv,
                 at_.qkv, true, T_, t);
      });
      // dp = da v^T, then ds in its place
      pack_transposed(hd, T_, k.qkv + values + kv, at_.qkv, packed_);
      slabs([&](Index t, Index n, Index seen) {
        multiply(n, seen, hd, da_ + t * at_.wide + j * hd, at_.wide, 1, packed_, scores_ + t * T_,
                 T_, false);
        softmax_rows_back(p, scores_, t, n, seen);
      });
      // dq = ds k; dk += ds^T q
      pack(T_, hd, k.turned + at_.wide + kv, turned, packed_);
      slabs([&](Index t, Index n, Index seen) {
        multiply(n, hd, seen, scores_ + t * T_, T_, 1, packed_, dturned_ + t * turned + j * hd,
                 turned, false, T_);
      });
      pack(T_, hd, k.turned + j * hd, turned, packed_);
      slabs([&](Index t, Index n, Index) {
        multiply(n, hd, T_ - t, scores_ + t * T_ + t, 1, T_, packed_,
                 dturned_ + t * turned + at_.wide + kv, turned, true, T_, t);
      });
    }
  }

  void layer_forward(const Weights& w, const LayerAt& at, const Kept& k) {
    const Index d = at_.d, ff = at_.ff;
    std::memcpy(k.x, x_, static_cast<std::size_t>(T_ * d) * 4);
    rms(T_, d, k.x, d, w.plain + at.attention_norm, k.h, d, k.r);
    apply(w, at.qkv, k.h, k.qkv, false);
    norm_heads(w, at, k);
    attention(k);
    apply(w, at.o, k.a, x_, true);
    std::memcpy(k.x2, x_, static_cast<std::size_t>(T_ * d) * 4);
    rms(T_, d, k.x2, d, w.plain + at.ff_norm, k.h2, d, k.r2);
    apply(w, at.gate_up, k.h2, k.gate_up, false);
    for (Index t = 0; t < T_; ++t) {
      const float *gate = k.gate_up + t * 2 * ff, *up = gate + ff;
      for (Index i = 0; i < ff; i += kLanes) {  // ff is a multiple of 128
        const Vec z = load(gate + i);
        store(k.s + t * ff + i, z / (1.0f + exp(-z)) * load(up + i));
      }
    }
    apply(w, at.down, k.s, x_, true);
  }

  void layer_backward(const Weights& w, const LayerAt& at, const Kept& k, const float* dout,
                      float* din) {
    const Index d = at_.d, ff = at_.ff;
    apply_back(w, at.down, dout, d, ds_, false);
    for (Index t = 0; t < T_; ++t) {
      const float *gate = k.gate_up + t * 2 * ff, *up = gate + ff;
      float *dgate = k.dgate_up + t * 2 * ff, *dup = dgate + ff;
      for (Index i = 0; i < ff; i += kLanes) {
        const Vec z = load(gate + i), sigmoid = 1.0f / (1.0f + exp(-z)),
                  ds = load(ds_ + t * ff + i);
        store(dup + i, ds * z * sigmoid);
        store(dgate + i, ds * load(up + i) * sigmoid * (1.0f + z * (1.0f - sigmoid)));
      }
    }
    apply_back(w, at.gate_up, k.dgate_up, 2 * ff, dh_, false);
    rms_back(T_, d, k.x2, d, w.plain + at.ff_norm, k.r2, dh_, d, k.dx2, d, norm(at.ff_norm), dout);

    apply_back(w, at.o, k.dx2, d, da_, false);
    attention_back(k);
    norm_heads_back(w, at, k);
    apply_back(w, at.qkv, k.dqkv, at_.qkv, dh_, false);
    rms_back(T_, d, k.x, d, w.plain + at.attention_norm, k.r, dh_, d, din, d,
             norm(at.attention_norm), k.dx2);
  }

  // Logits become the gradient of the mean loss over positions 0 .. T - 2.
  void losses_to_gradients(const std::uint16_t* tokens) {
    const Index V = c_.V;
    const float part = 1 / static_cast<float>(T_ - 1);
    for (Index t = 0; t + 1 < T_; ++t) {
      float* row = logits_ + t * V;
      float most = row[0], total = 0;
      for (Index v = 1; v < V; ++v) most = std::max(most, row[v]);
      map(V, row, row, [&](Vec v) { return exp(v - most); });
      for (Index v = 0; v < V; ++v) total += row[v];
      for (Index v = 0; v < V; ++v) row[v] *= part / total;
      row[tokens[t + 1]] -= part;
    }
    std::fill_n(logits_ + (T_ - 1) * V, V, 0.0f);
  }

  const Layout& at_;
  const tt_config& c_;
  const Index T_;
  std::vector<Kept> kept_;
  std::vector<Operands> operands_;
  Buffer memory_;  // laid out when the others are there
  float *x_, *h_, *dx_, *dh_, *r_, *logits_, *ds_, *da_, *dturned_, *scores_, *norms_, *packed_,
      *cos_, *sin_;
};

void pack_weights(const Layout& at, const float* plain, float* packed) {
  at.each_matrix([&](const MatrixAt& m) {
    for (Index r = 0; r < m.rows; r += kLanes) {
      pack_both(plain + m.offset + r * m.cols, r, std::min<Index>(kLanes, m.rows - r), m.rows,
                m.cols, packed + m.forward, packed + m.backward);
    }
  });
}

}  // namespace
