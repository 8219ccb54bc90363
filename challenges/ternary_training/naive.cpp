// The plain implementation: one document at a time, one thread, loops as the formulas have them.
//
// Training keeps latent fp32 weights. Every step rounds them to blocks, runs the model with what
// the blocks say, and applies the gradients to the latent weights as if rounding were the identity.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "abi.h"

namespace {

using Index = std::int64_t;
constexpr Index kBlock = 128, kBytes = 34;

// --- blocks
// ------------------------------------------------------------------------------------------

float half_to_float(unsigned bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  return exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                       : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

// v >= 0, to nearest, ties to even; 65504 at most.
unsigned half_from(double v) {
  v = std::min(v, 65504.0);
  if (!(v > 0)) return 0;
  const int exponent = std::max(std::ilogb(v), -14);
  return static_cast<unsigned>(std::nearbyint(std::ldexp(v, 10 - exponent))) +
         (static_cast<unsigned>(exponent + 14) << 10);
}

float block_scale(const std::uint8_t* block) {
  return half_to_float(static_cast<unsigned>(block[0] | block[1] << 8));
}

void quantize_block(const float* w, std::uint8_t* block) {
  double sum = 0;
  for (Index j = 0; j < kBlock; ++j) sum += std::abs(static_cast<double>(w[j]));
  const unsigned bits = half_from(sum / kBlock);
  std::memset(block, 0, kBytes);
  block[0] = static_cast<std::uint8_t>(bits);
  block[1] = static_cast<std::uint8_t>(bits >> 8);
  const float half = block_scale(block) / 2;
  for (Index j = 0; j < kBlock; ++j) {
    const int code = half > 0 && std::abs(w[j]) > half ? (w[j] > 0 ? 2 : 0) : 1;
    block[2 + j / 4] = static_cast<std::uint8_t>(block[2 + j / 4] | code << (j % 4 * 2));
  }
}

void dequantize_block(const std::uint8_t* block, float* w) {
  const float s = block_scale(block);
  for (Index j = 0; j < kBlock; ++j) {
    w[j] = static_cast<float>((block[2 + j / 4] >> (j % 4 * 2) & 3) - 1) * s;
  }
}

// The same codes in 28 bytes: a byte holds those of n weights, `stride` apart.
constexpr Index kDenseBytes = 28;

struct DenseByte {
  Index first, stride, n;
};

DenseByte dense_byte(Index i) {
  if (i < 16) return {i, 16, 5};
  if (i < 24) return {80 + i - 16, 8, 5};
  return {120 + i - 24, 2, 4};
}

void pack_dense_block(const std::uint8_t* block, std::uint8_t* dense) {
  for (Index i = 0; i < 26; ++i) {
    const auto [first, stride, n] = dense_byte(i);
    int number = 0;
    for (Index k = 0; k < 5; ++k) {
      const Index j = first + k * stride;
      number = number * 3 + (k < n ? block[2 + j / 4] >> (j % 4 * 2) & 3 : 0);
    }
    dense[i] = static_cast<std::uint8_t>((number * 256 + 242) / 243);
  }
  std::memcpy(dense + 26, block, 2);
}

void unpack_dense_block(const std::uint8_t* dense, std::uint8_t* block) {
  std::memset(block, 0, kBytes);
  std::memcpy(block, dense + 26, 2);
  for (Index i = 0; i < 26; ++i) {
    const auto [first, stride, n] = dense_byte(i);
    // A fraction of 256, whose next digit is what carries over when it is tripled.
    unsigned rest = dense[i];
    for (Index k = 0; k < n; ++k) {
      const Index j = first + k * stride;
      block[2 + j / 4] =
          static_cast<std::uint8_t>(block[2 + j / 4] | (rest * 3 >> 8) << (j % 4 * 2));
      rest = rest * 3 & 255;
    }
  }
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// To nearest, ties to even; finite numbers only.
std::uint16_t to_bf16(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// --- linear layers
// -----------------------------------------------------------------------------------

// Sixteen sums side by side, so that the compiler can use vectors.
float dot(const float* a, const float* b, Index n) {
  float part[16] = {};
  Index i = 0;
  for (; i + 16 <= n; i += 16) {
    for (Index j = 0; j < 16; ++j) part[j] += a[i + j] * b[i + j];
  }
  float sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const float p : part) sum += p;
  return sum;
}

void add_scaled(float* y, float a, const float* x, Index n) {
  for (Index i = 0; i < n; ++i) y[i] += a * x[i];
}

// y [M, N] = x [M, K] W [N, K]^T
void forward(Index M, Index N, Index K, const float* x, const float* w, float* y) {
  for (Index m = 0; m < M; ++m) {
    for (Index n = 0; n < N; ++n) y[m * N + n] = dot(x + m * K, w + n * K, K);
  }
}

// dx [M, K] += dy W
void backward_input(Index M, Index N, Index K, const float* dy, const float* w, float* dx) {
  for (Index m = 0; m < M; ++m) {
    for (Index n = 0; n < N; ++n) add_scaled(dx + m * K, dy[m * N + n], w + n * K, K);
  }
}

// dw [N, K] += dy^T x
void backward_weight(Index M, Index N, Index K, const float* dy, const float* x, float* dw) {
  for (Index m = 0; m < M; ++m) {
    for (Index n = 0; n < N; ++n) add_scaled(dw + n * K, dy[m * N + n], x + m * K, K);
  }
}

// --- memory
// ------------------------------------------------------------------------------------------

struct Buffer {
  Buffer(assay_ctx* context, Index n)
      : ctx(context),
        data(static_cast<float*>(
            context->alloc(context, static_cast<std::size_t>(n) * 4 + 4, 64, 0))) {
    if (data != nullptr) std::memset(data, 0, static_cast<std::size_t>(n) * 4);
  }
  ~Buffer() {
    if (data != nullptr) ctx->free(ctx, data);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  operator float*() const { return data; }

  assay_ctx* ctx;
  float* data;
};

// --- the model
// -----------------------------------------------------------------------------------------

// Offsets of one layer's matrices and norms in an array of all weights.
struct LayerAt {
  Index q, k, v, o, gate, up, down, attention_norm, query_norm, key_norm, ff_norm;
};

// An array of all weights in the blob's order: `matrices` of them in blocks, then the norms.
struct Layout {
  explicit Layout(const tt_config& config)
      : c(config), wide(Index{c.Hq} * c.hd), narrow(Index{c.Hkv} * c.hd) {
    embeddings = Index{c.V} * c.d;
    per_layer = c.d * (2 * wide + 2 * narrow + 3 * Index{c.ff});
    norms_per_layer = 2 * c.d + 2 * c.hd;
    matrices = (c.tied ? 1 : 2) * embeddings + c.L * per_layer;
    size = matrices + c.L * norms_per_layer + c.d;
  }
  Index head() const { return c.tied ? 0 : embeddings; }
  Index final_norm() const { return size - c.d; }
  LayerAt layer(Index l) const {
    const Index q = (c.tied ? 1 : 2) * embeddings + l * per_layer, k = q + wide * c.d;
    const Index v = k + narrow * c.d, o = v + narrow * c.d, gate = o + wide * c.d;
    const Index up = gate + Index{c.ff} * c.d, down = up + Index{c.ff} * c.d;
    const Index norm = matrices + l * norms_per_layer;
    return {q, k, v, o, gate, up, down, norm, norm + c.d, norm + c.d + c.hd, norm + c.d + 2 * c.hd};
  }

  tt_config c;
  Index wide, narrow, embeddings, per_layer, norms_per_layer, matrices, size;
};

// y = x r w with r = 1 / sqrt(mean(x^2) + eps), for each row; r is kept.
void rms_forward(Index rows, Index n, float eps, const float* x, const float* w, float* y,
                 float* r) {
  for (Index i = 0; i < rows; ++i) {
    r[i] = 1 / std::sqrt(dot(x + i * n, x + i * n, n) / static_cast<float>(n) + eps);
    for (Index j = 0; j < n; ++j) y[i * n + j] = x[i * n + j] * r[i] * w[j];
  }
}

// dx += and dw += the gradients of the above.
void rms_backward(Index rows, Index n, const float* x, const float* w, const float* r,
                  const float* dy, float* dx, float* dw) {
  for (Index i = 0; i < rows; ++i) {
    float projection = 0;
    for (Index j = 0; j < n; ++j) projection += dy[i * n + j] * w[j] * x[i * n + j];
    projection *= r[i] * r[i] / static_cast<float>(n);
    for (Index j = 0; j < n; ++j) {
      dw[j] += dy[i * n + j] * x[i * n + j] * r[i];
      dx[i * n + j] += r[i] * (dy[i * n + j] * w[j] - x[i * n + j] * projection);
    }
  }
}

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

// --- training
// ----------------------------------------------------------------------------------------

constexpr Index kBatch = 4;  // documents
constexpr float kLearningRate = 2e-3f, kNormRate = 1e-2f, kBeta1 = 0.9f, kBeta2 = 0.98f, kClip = 1;
constexpr float kInit = 0.1f, kEmbeddingInit = 0.05f;
constexpr double kWarmup = 0.05, kPasses = 8;

struct Generator {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }
  float normal() {
    return static_cast<float>(std::sqrt(-2 * std::log(uniform())) *
                              std::cos(6.283185307179586 * uniform()));
  }
};

template <class ModelPass = Pass>
class Trainer {
 public:
  Trainer(assay_ctx* ctx, const tt_config& c, std::uint64_t seed)
      : at_(c),
        random_{seed},
        latent_(ctx, at_.size),
        used_(ctx, at_.size),
        gradient_(ctx, at_.size),
        first_(ctx, at_.size),
        second_(ctx, at_.size),
        pass_(ctx, at_) {
    if (!ready()) return;
    for (Index i = 0; i < at_.matrices; ++i) {
      latent_[i] = (i < at_.embeddings ? kEmbeddingInit : kInit) * random_.normal();
    }
    std::fill(latent_ + at_.matrices, latent_ + at_.size, 1.0f);
  }
  bool ready() const {
    return latent_.data && used_.data && gradient_.data && first_.data && second_.data &&
           pass_.ready();
  }

  virtual ~Trainer() = default;

  void run(const std::uint16_t* docs, Index n_docs, const tt_budget& budget) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const double tokens_per_step = static_cast<double>(kBatch) * at_.c.T,
                 most = most_tokens(n_docs, budget);
    Index steps = 0;
    double longest = 0, last = 0;
    while (n_docs > 0) {
      const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      longest = std::max(longest, elapsed - last);
      last = elapsed;
      // A step that does not fit any more is not begun.
      const double by_tokens = tokens_per_step * static_cast<double>(steps) / most;
      if (tokens_per_step * static_cast<double>(steps + 1) > most) break;
      if (elapsed + 1.5 * longest > deadline(budget)) break;
      // Early on the clock does not count: a stalled step would change a run that its tokens end.
      const double by_clock = elapsed / deadline(budget);
      step(docs, n_docs, ++steps, std::max(by_tokens, by_clock > 0.25 ? by_clock : 0));
    }
  }

  // As many steps as fit into `until` tokens, counted from the first step ever; the rate goes by
  // tokens alone.
  void run_part(const std::uint16_t* docs, Index n_docs, const tt_budget& budget, Index until) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const Index tokens = kBatch * at_.c.T;
    const double most = most_tokens(n_docs, budget);
    while (n_docs > 0 &&
           static_cast<double>((steps_ + 1) * tokens) <=
               std::min(static_cast<double>(until), most) &&
           std::chrono::duration<double>(Clock::now() - start).count() < deadline(budget)) {
      const double progress = static_cast<double>(tokens * steps_) / most;
      step(docs, n_docs, ++steps_, progress);
    }
  }

  // Everything that the next step depends on; the first weights are all that is random.
  virtual void save(std::uint8_t* state) const {
    const Index counters[2] = {steps_, next_};
    std::memcpy(state, counters, sizeof counters);
    state += sizeof counters;
    for (const Buffer* part : {&latent_, &first_, &second_}) {
      std::memcpy(state, part->data, static_cast<std::size_t>(at_.size) * 4);
      state += at_.size * 4;
    }
  }

  virtual void load(const std::uint8_t* state) {
    Index counters[2];
    std::memcpy(counters, state, sizeof counters);
    steps_ = counters[0];
    next_ = counters[1];
    state += sizeof counters;
    for (Buffer* part : {&latent_, &first_, &second_}) {
      std::memcpy(part->data, state, static_cast<std::size_t>(at_.size) * 4);
      state += at_.size * 4;
    }
  }

  virtual void write(std::uint8_t* blob) const {
    for (Index i = 0; i < at_.matrices / kBlock; ++i)
      quantize_block(latent_ + i * kBlock, blob + i * kBytes);
    std::memcpy(blob + at_.matrices / kBlock * kBytes, latent_ + at_.matrices,
                static_cast<std::size_t>(at_.size - at_.matrices) * 4);
  }

 protected:
  // What the model runs with: the latent weights as their blocks would say.
  virtual void round_weights() {
    std::uint8_t block[kBytes];
    for (Index i = 0; i < at_.matrices; i += kBlock) {
      quantize_block(latent_ + i, block);
      dequantize_block(block, used_ + i);
    }
    std::copy(latent_ + at_.matrices, latent_ + at_.size, used_ + at_.matrices);
  }

  // Documents in order: they are as random as any shuffle of them.
  virtual Index next_document(Index n_docs) { return next_++ % n_docs; }

  // Of few documents no more than kPasses over them: beyond that they are learned by heart, and
  // others are predicted worse.
  virtual double most_tokens(Index n_docs, const tt_budget& budget) const {
    return std::min(static_cast<double>(budget.max_tokens),
                    kPasses * static_cast<double>(n_docs) * at_.c.T);
  }

  // Seconds after which no step is begun that may not end in time.
  virtual double deadline(const tt_budget& budget) const { return 0.95 * budget.seconds; }

  const Layout at_;
  Generator random_;
  Buffer latent_, used_, gradient_, first_, second_;
  Index next_ = 0, steps_ = 0;

 private:
  void step(const std::uint16_t* docs, Index n_docs, Index number, double progress) {
    round_weights();
    std::fill_n(gradient_.data, at_.size, 0.0f);
    for (Index i = 0; i < kBatch; ++i) {
      pass_.train(used_, docs + next_document(n_docs) * at_.c.T, gradient_);
    }
    double norm = 0;
    for (Index i = 0; i < at_.size; ++i) norm += static_cast<double>(gradient_[i]) * gradient_[i];
    norm = std::sqrt(norm) / kBatch;
    const auto factor = static_cast<float>(std::min(1.0, kClip / (norm + 1e-6)) / kBatch);
    // Up over the warm-up, then down to nothing.
    const double rate =
        progress < kWarmup ? progress / kWarmup + 0.02 : (1 - progress) / (1 - kWarmup);
    adam(number, static_cast<float>(rate), factor);
  }

  void adam(Index number, float rate, float factor) {
    const auto n = static_cast<float>(number);
    const float correct1 = 1 / (1 - std::pow(kBeta1, n)), correct2 = 1 / (1 - std::pow(kBeta2, n));
    for (Index i = 0; i < at_.size; ++i) {
      const float g = gradient_[i] * factor,
                  lr = rate * (i < at_.matrices ? kLearningRate : kNormRate);
      first_[i] += (1 - kBeta1) * (g - first_[i]);
      second_[i] += (1 - kBeta2) * (g * g - second_[i]);
      latent_[i] -= lr * first_[i] * correct1 / (std::sqrt(second_[i] * correct2) + 1e-8f);
    }
  }

  ModelPass pass_;
};

template <class T>
int train_with(assay_ctx* ctx, const tt_config& c, const std::uint16_t* docs, Index n_docs,
               const tt_budget& budget, std::uint8_t* blob) {
  T trainer(ctx, c, budget.seed);
  if (!trainer.ready()) return ASSAY_ENOMEM;
  trainer.run(docs, n_docs, budget);
  trainer.write(blob);
  return ASSAY_OK;
}

template <class T>
int train_part_with(assay_ctx* ctx, const tt_config& c, const std::uint16_t* docs, Index n_docs,
                    const tt_budget& budget, bool resume, Index until, std::uint8_t* state,
                    std::uint8_t* blob) {
  T trainer(ctx, c, budget.seed);
  if (!trainer.ready()) return ASSAY_ENOMEM;
  if (resume) trainer.load(state);
  trainer.run_part(docs, n_docs, budget, until);
  trainer.save(state);
  if (blob != nullptr) trainer.write(blob);
  return ASSAY_OK;
}

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

template <class ModelPass>
int logits_with(assay_ctx* ctx, const tt_config& c, const std::uint8_t* blob,
                const std::uint16_t* docs, Index n_docs, float* logits) {
  const Layout at(c);
  const Buffer w(ctx, at.size);
  ModelPass pass(ctx, at);
  if (w.data == nullptr || !pass.ready()) return ASSAY_ENOMEM;
  for (Index i = 0; i < at.matrices / kBlock; ++i)
    dequantize_block(blob + i * kBytes, w + i * kBlock);
  std::memcpy(w + at.matrices, blob + at.matrices / kBlock * kBytes,
              static_cast<std::size_t>(at.size - at.matrices) * 4);
  const Index per_doc = Index{c.T} * c.V;
  for (Index i = 0; i < n_docs; ++i) {
    std::copy_n(pass.run(w, docs + i * c.T), per_doc, logits + i * per_doc);
  }
  return ASSAY_OK;
}

bool valid(const tt_config* c) {
  if (c == nullptr || c->size != sizeof(tt_config)) return false;
  for (const std::int32_t n : {c->V, c->d, c->L, c->Hq, c->Hkv, c->hd, c->ff}) {
    if (n <= 0) return false;
  }
  const bool blocks =
      c->d % kBlock == 0 && Index{c->Hq} * c->hd % kBlock == 0 && c->ff % kBlock == 0;
  return blocks && c->V <= 65536 && c->T >= 2 && c->hd % 2 == 0 && c->Hq % c->Hkv == 0 &&
         (c->tied == 0 || c->tied == 1);
}

bool valid_matrix(Index rows, Index cols, const void* a, const void* b) {
  return rows >= 0 && cols >= 0 && cols % kBlock == 0 &&
         (rows * cols == 0 || (a != nullptr && b != nullptr));
}

}  // namespace

extern "C" size_t tt_blob_bytes(const tt_config* c) {
  if (!valid(c)) return 0;
  const Layout at(*c);
  return static_cast<std::size_t>(at.matrices / kBlock * kBytes + 4 * (at.size - at.matrices));
}

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || (n_docs > 0 && docs == nullptr) || budget == nullptr ||
      blob == nullptr) {
    return ASSAY_EINVAL;
  }
  return train_with<Trainer<>>(ctx, *c, docs, n_docs, *budget, static_cast<std::uint8_t*>(blob));
}

extern "C" int tt_quantize(assay_ctx*, int64_t rows, int64_t cols, const float* w,
                           uint8_t* blocks) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i)
    quantize_block(w + i * kBlock, blocks + i * kBytes);
  return ASSAY_OK;
}

extern "C" int tt_dequantize(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* blocks,
                             float* w) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i)
    dequantize_block(blocks + i * kBytes, w + i * kBlock);
  return ASSAY_OK;
}

extern "C" int tt_linear(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols, const float* x,
                         const uint8_t* blocks, const float* dy, float* y, float* dx,
                         float* dw_latent) {
  if (M < 0 || !valid_matrix(rows, cols, blocks, dw_latent)) return ASSAY_EINVAL;
  if (M * cols > 0 && (x == nullptr || dx == nullptr)) return ASSAY_EINVAL;
  if (M * rows > 0 && (dy == nullptr || y == nullptr)) return ASSAY_EINVAL;
  const Buffer w(ctx, rows * cols);
  if (w.data == nullptr) return ASSAY_ENOMEM;
  tt_dequantize(ctx, rows, cols, blocks, w);
  std::fill_n(dx, M * cols, 0.0f);
  std::fill_n(dw_latent, rows * cols, 0.0f);
  forward(M, rows, cols, x, w, y);
  backward_input(M, rows, cols, dy, w, dx);
  backward_weight(M, rows, cols, dy, x, dw_latent);
  return ASSAY_OK;
}

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob, const uint16_t* docs,
                         int64_t n_docs, float* logits) {
  if (!valid(c) || n_docs < 0 || blob == nullptr ||
      (n_docs > 0 && (docs == nullptr || logits == nullptr))) {
    return ASSAY_EINVAL;
  }
  return logits_with<Pass>(ctx, *c, static_cast<const std::uint8_t*>(blob), docs, n_docs, logits);
}

// --- optional functions
// ----------------------------------------------------------------------------------------

extern "C" int tt_pack_dense(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* blocks,
                             uint8_t* dense) {
  if (!valid_matrix(rows, cols, blocks, dense)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i)
    pack_dense_block(blocks + i * kBytes, dense + i * kDenseBytes);
  return ASSAY_OK;
}

extern "C" int tt_unpack_dense(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* dense,
                               uint8_t* blocks) {
  if (!valid_matrix(rows, cols, dense, blocks)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i)
    unpack_dense_block(dense + i * kDenseBytes, blocks + i * kBytes);
  return ASSAY_OK;
}

extern "C" int tt_linear_bf16(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols,
                              const uint16_t* x, const uint8_t* blocks, const uint16_t* dy,
                              uint16_t* y, uint16_t* dx, float* dw_latent) {
  if (M < 0 || !valid_matrix(rows, cols, blocks, dw_latent)) return ASSAY_EINVAL;
  if (M * cols > 0 && (x == nullptr || dx == nullptr)) return ASSAY_EINVAL;
  if (M * rows > 0 && (dy == nullptr || y == nullptr)) return ASSAY_EINVAL;
  const Buffer w(ctx, rows * cols), x32(ctx, M * cols), dy32(ctx, M * rows), y32(ctx, M * rows),
      dx32(ctx, M * cols);
  for (const Buffer* b : {&w, &x32, &dy32, &y32, &dx32}) {
    if (b->data == nullptr) return ASSAY_ENOMEM;
  }
  for (Index i = 0; i < rows * cols / kBlock; ++i)
    dequantize_block(blocks + i * kBytes, w + i * kBlock);
  std::transform(x, x + M * cols, x32.data, from_bf16);
  std::transform(dy, dy + M * rows, dy32.data, from_bf16);
  std::fill_n(dw_latent, rows * cols, 0.0f);
  forward(M, rows, cols, x32, w, y32);
  backward_input(M, rows, cols, dy32, w, dx32);
  backward_weight(M, rows, cols, dy32, x32, dw_latent);
  std::transform(y32.data, y32 + M * rows, y, to_bf16);
  std::transform(dx32.data, dx32 + M * cols, dx, to_bf16);
  return ASSAY_OK;
}

namespace {

bool valid_generation(const tt_config* c, const tt_generation* g) {
  return valid(c) && g != nullptr && g->size == sizeof(tt_generation) && g->n_docs >= 0 &&
         g->position >= 0 && g->n_new >= 1 && g->steps >= 0 && g->position <= c->T &&
         g->n_new <= c->T - g->position && g->steps <= c->T - g->position - g->n_new;
}

}  // namespace

extern "C" int tt_generate(assay_ctx* ctx, const tt_config* c, const void* blob,
                           const tt_generation* g, const uint16_t* tokens, float* state,
                           uint16_t* generated) {
  if (!valid_generation(c, g) || blob == nullptr) return ASSAY_EINVAL;
  if (g->n_docs > 0 &&
      (tokens == nullptr || state == nullptr || (g->steps > 0 && generated == nullptr))) {
    return ASSAY_EINVAL;
  }
  return generate_with<Decoder>(ctx, *c, static_cast<const std::uint8_t*>(blob), *g, tokens, state,
                                generated);
}

extern "C" int tt_train_part(assay_ctx* ctx, const tt_config* c, const uint16_t* docs,
                             int64_t n_docs, const tt_budget* budget, int32_t resume, int64_t until,
                             void* state, void* blob) {
  if (!valid(c) || n_docs < 0 || (n_docs > 0 && docs == nullptr) || budget == nullptr ||
      state == nullptr || (resume != 0 && resume != 1) || until < 0) {
    return ASSAY_EINVAL;
  }
  return train_part_with<Trainer<>>(ctx, *c, docs, n_docs, *budget, resume == 1, until,
                                    static_cast<std::uint8_t*>(state),
                                    static_cast<std::uint8_t*>(blob));
}

extern "C" int tt_blob_statistics(assay_ctx* ctx, const tt_config* c, const void* blob,
                                  const void* before, int64_t* counts) {
  if (!valid(c) || blob == nullptr || counts == nullptr) return ASSAY_EINVAL;
  const Layout at(*c);
  const Index most = std::max({Index{c->d}, at.wide, Index{c->ff}});
  const Buffer used(ctx, most);
  if (used.data == nullptr) return ASSAY_ENOMEM;
  const auto *now = static_cast<const std::uint8_t*>(blob),
             *then = static_cast<const std::uint8_t*>(before);
  if (then == nullptr) then = now;
  const auto matrix = [&](Index rows, Index cols) {
    std::fill_n(counts, 7, 0);
    std::fill_n(used.data, cols, 0.0f);
    for (Index row = 0; row < rows; ++row) {
      bool alive = false;
      for (Index col = 0; col < cols; col += kBlock, now += kBytes, then += kBytes) {
        float a[kBlock], b[kBlock];
        dequantize_block(now, a);
        dequantize_block(then, b);
        for (Index j = 0; j < kBlock; ++j) {
          ++counts[a[j] < 0 ? 0 : a[j] > 0 ? 2 : 1];
          counts[5] += (a[j] < 0) != (b[j] < 0) || (a[j] > 0) != (b[j] > 0);
          counts[6] += (a[j] < 0 && b[j] > 0) || (a[j] > 0 && b[j] < 0);
          if (a[j] == 0) continue;
          alive = true;
          used[col + j] = 1;
        }
      }
      counts[3] += !alive;
    }
    counts[4] = std::count(used.data, used + cols, 0.0f);
    counts += 7;
  };
  for (int i = 0; i < 2 - c->tied; ++i) matrix(c->V, c->d);
  for (Index l = 0; l < c->L; ++l) {
    matrix(at.wide, c->d);
    for (int i = 0; i < 2; ++i) matrix(at.narrow, c->d);
    matrix(c->d, at.wide);
    for (int i = 0; i < 2; ++i) matrix(c->ff, c->d);
    matrix(c->d, c->ff);
  }
  return ASSAY_OK;
}

extern "C" int tt_distill_loss(assay_ctx*, int64_t M, int64_t V, float temperature,
                               const float* teacher, const float* student, float* loss,
                               float* gradient) {
  if (M < 0 || V < 0 || !(temperature > 0) || std::isinf(temperature)) return ASSAY_EINVAL;
  if ((M > 0 && loss == nullptr) ||
      (M * V > 0 && (teacher == nullptr || student == nullptr || gradient == nullptr))) {
    return ASSAY_EINVAL;
  }
  for (Index m = 0; m < M; ++m, teacher += V, student += V, gradient += V) {
    float most_t = -std::numeric_limits<float>::infinity(), most_s = most_t;
    for (Index v = 0; v < V; ++v) {
      most_t = std::max(most_t, teacher[v]);
      most_s = std::max(most_s, student[v]);
    }
    double sum_t = 0, sum_s = 0, total = 0;
    for (Index v = 0; v < V; ++v) {
      sum_t += std::exp((teacher[v] - most_t) / temperature);
      sum_s += std::exp((student[v] - most_s) / temperature);
    }
    const auto log_t = static_cast<float>(std::log(sum_t)),
               log_s = static_cast<float>(std::log(sum_s));
    for (Index v = 0; v < V; ++v) {
      const float log_p = (teacher[v] - most_t) / temperature - log_t,
                  log_q = (student[v] - most_s) / temperature - log_s;
      const float p = std::exp(log_p), q = std::exp(log_q);
      total += p * (log_p - log_q);
      gradient[v] = temperature * (q - p);
    }
    loss[m] = static_cast<float>(static_cast<double>(temperature) * temperature * total);
  }
  return ASSAY_OK;
}
