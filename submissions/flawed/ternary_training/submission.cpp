// Sample entrant of assay, not a model's answer: plausible code with bugs that real answers had.
//   1. Trains in fp32 and rounds at the end: the rounded model has never been trained.
//   2. Queries and keys go into attention without their norms; the blob's stay at one.
//   3. Rotates neighbouring components instead of the halves of a head.
//   4. The scale is at least 1e-5 and codes go by the scale before it is rounded.
//   5. Goes over a few documents again and again, until it knows them by heart.
//   6. Learns from three eighths of the tokens that the budget allows: the loss looked flat there.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "abi.h"

namespace {

using Values = std::vector<float>;
constexpr std::size_t kBlock = 128, kBytes = 34;

// --- blocks
// ------------------------------------------------------------------------------------------

double half_value(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10), fraction = static_cast<int>(bits & 1023);
  return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
}

// The nearest of the two neighbours of v; the even one on a tie.
unsigned to_half(double v) {
  if (v >= 65504) return 0x7bff;
  unsigned low = 0, high = 0x7bff;
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    (half_value(middle) <= v ? low : high) = middle;
  }
  const double below = v - half_value(low), above = half_value(high) - v;
  if (below != above) return below < above ? low : high;
  return low % 2 == 0 ? low : high;
}

void pack_block(const float* w, std::uint8_t* block) {
  double mean = 0;
  for (std::size_t j = 0; j < kBlock; ++j) mean += std::abs(static_cast<double>(w[j])) / kBlock;
  mean = std::max(mean, 1e-5);
  const unsigned bits = to_half(mean);
  const double half = mean / 2;
  std::fill_n(block, kBytes, std::uint8_t{0});
  block[0] = static_cast<std::uint8_t>(bits & 255);
  block[1] = static_cast<std::uint8_t>(bits >> 8);
  for (std::size_t j = 0; j < kBlock; ++j) {
    unsigned code = 1;
    if (w[j] > half) code = 2;
    if (w[j] < -half) code = 0;
    block[2 + j / 4] = static_cast<std::uint8_t>(block[2 + j / 4] | code << (j % 4 * 2));
  }
}

void unpack_block(const std::uint8_t* block, float* w) {
  const auto s = static_cast<float>(half_value(block[0] + 256u * block[1]));
  for (std::size_t j = 0; j < kBlock; ++j) {
    const int code = block[2 + j / 4] >> (j % 4 * 2) & 3;
    w[j] = static_cast<float>(code - 1) * s;
  }
}

// --- loops
// -------------------------------------------------------------------------------------------

float dot(const float* a, const float* b, std::size_t n) {
  float part[16] = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) part[j] += a[i + j] * b[i + j];
  }
  float total = 0;
  for (; i < n; ++i) total += a[i] * b[i];
  for (const float p : part) total += p;
  return total;
}

void add_times(float* y, float a, const float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// --- layers
// ------------------------------------------------------------------------------------------

struct Schedule {
  float rate = 0, factor = 1;  // learning rate; factor of the gradients
  int step = 1;
};

struct Parameter {
  Values value, gradient, first, second;

  void resize(std::size_t n) {
    for (Values* v : {&value, &gradient, &first, &second}) v->assign(n, 0.0f);
  }
  void adam(const Schedule& s, float rate) {
    constexpr float kBeta1 = 0.9f, kBeta2 = 0.98f;
    const float n = static_cast<float>(s.step);
    const float correct1 = 1 - std::pow(kBeta1, n), correct2 = 1 - std::pow(kBeta2, n);
    for (std::size_t i = 0; i < value.size(); ++i) {
      const float g = gradient[i] * s.factor;
      first[i] = kBeta1 * first[i] + (1 - kBeta1) * g;
      second[i] = kBeta2 * second[i] + (1 - kBeta2) * g * g;
      value[i] -= s.rate * rate * (first[i] / correct1) / (std::sqrt(second[i] / correct2) + 1e-8f);
    }
    std::fill(gradient.begin(), gradient.end(), 0.0f);
  }
};

// A ternary matrix [out, in].
struct Linear {
  std::size_t out = 0, in = 0;
  Parameter p;
  Values used;  // what the blocks of the latent weights say

  void resize(std::size_t rows, std::size_t columns) {
    out = rows;
    in = columns;
    p.resize(out * in);
    used.resize(out * in);
  }
  void round() { used = p.value; }
  Values forward(const Values& x) const {
    Values y(x.size() / in * out);
    for (std::size_t t = 0; t < x.size() / in; ++t) {
      for (std::size_t o = 0; o < out; ++o) y[t * out + o] = dot(&x[t * in], &used[o * in], in);
    }
    return y;
  }
  // Adds to dx.
  void backward(const Values& x, const Values& dy, Values& dx) {
    for (std::size_t t = 0; t < x.size() / in; ++t) {
      for (std::size_t o = 0; o < out; ++o) {
        add_times(&dx[t * in], dy[t * out + o], &used[o * in], in);
        add_times(&p.gradient[o * in], dy[t * out + o], &x[t * in], in);
      }
    }
  }
};

// Root mean square norm over every run of as many values as it has weights: a row, or a head.
struct Norm {
  Parameter p;
  float eps = 0;

  void resize(std::size_t n, float epsilon) {
    p.resize(n);
    std::fill(p.value.begin(), p.value.end(), 1.0f);
    eps = epsilon;
  }
  float inverse_root(const float* x) const {
    const std::size_t n = p.value.size();
    return 1 / std::sqrt(dot(x, x, n) / static_cast<float>(n) + eps);
  }
  Values forward(const Values& x) const {
    const std::size_t n = p.value.size();
    Values y(x.size());
    for (std::size_t i = 0; i < x.size(); i += n) {
      const float r = inverse_root(&x[i]);
      for (std::size_t j = 0; j < n; ++j) y[i + j] = x[i + j] * r * p.value[j];
    }
    return y;
  }
  void backward(const Values& x, const Values& dy, Values& dx) {
    const std::size_t n = p.value.size();
    for (std::size_t i = 0; i < x.size(); i += n) {
      const float r = inverse_root(&x[i]);
      float projection = 0;
      for (std::size_t j = 0; j < n; ++j) {
        projection += dy[i + j] * p.value[j] * x[i + j];
        p.gradient[j] += dy[i + j] * x[i + j] * r;
      }
      projection *= r * r / static_cast<float>(n);
      for (std::size_t j = 0; j < n; ++j)
        dx[i + j] += r * (dy[i + j] * p.value[j] - x[i + j] * projection);
    }
  }
};

struct Heads {
  std::size_t T, Hq, Hkv, hd;
  float theta;

  // Turns rows of heads; direction -1 turns back.
  void rotate(Values& x, std::size_t heads, float direction) const {
    for (std::size_t i = 0; i < hd / 2; ++i) {
      const double frequency = std::pow(static_cast<double>(theta),
                                        -2.0 * static_cast<double>(i) / static_cast<double>(hd));
      for (std::size_t t = 0; t < T; ++t) {
        const auto c = static_cast<float>(std::cos(static_cast<double>(t) * frequency));
        const auto s = direction * static_cast<float>(std::sin(static_cast<double>(t) * frequency));
        for (std::size_t h = 0; h < heads; ++h) {
          float *pair = &x[(t * heads + h) * hd + 2 * i], &a = pair[0], &b = pair[1];
          const float old = a;
          a = old * c - b * s;
          b = old * s + b * c;
        }
      }
    }
  }

  const float* at(const Values& x, std::size_t heads, std::size_t t, std::size_t h) const {
    return &x[(t * heads + h) * hd];
  }
  float* at(Values& x, std::size_t heads, std::size_t t, std::size_t h) const {
    return &x[(t * heads + h) * hd];
  }

  // Probabilities [Hq, T, T] and what the heads return.
  Values attend(const Values& q, const Values& k, const Values& v, Values& p) const {
    Values a(T * Hq * hd);
    p.assign(Hq * T * T, 0.0f);
    const float scale = 1 / std::sqrt(static_cast<float>(hd));
    for (std::size_t h = 0; h < Hq; ++h) {
      const std::size_t g = h / (Hq / Hkv);
      for (std::size_t t = 0; t < T; ++t) {
        float* row = &p[(h * T + t) * T];
        float most = -std::numeric_limits<float>::infinity(), total = 0;
        for (std::size_t u = 0; u <= t; ++u) {
          row[u] = scale * dot(at(q, Hq, t, h), at(k, Hkv, u, g), hd);
          most = std::max(most, row[u]);
        }
        for (std::size_t u = 0; u <= t; ++u) total += row[u] = std::exp(row[u] - most);
        for (std::size_t u = 0; u <= t; ++u) {
          row[u] /= total;
          add_times(at(a, Hq, t, h), row[u], at(v, Hkv, u, g), hd);
        }
      }
    }
    return a;
  }

  void attend_back(const Values& q, const Values& k, const Values& v, const Values& p,
                   const Values& da, Values& dq, Values& dk, Values& dv) const {
    const float scale = 1 / std::sqrt(static_cast<float>(hd));
    Values dp(T);
    for (std::size_t h = 0; h < Hq; ++h) {
      const std::size_t g = h / (Hq / Hkv);
      for (std::size_t t = 0; t < T; ++t) {
        const float* row = &p[(h * T + t) * T];
        float projection = 0;
        for (std::size_t u = 0; u <= t; ++u) {
          dp[u] = dot(at(da, Hq, t, h), at(v, Hkv, u, g), hd);
          projection += row[u] * dp[u];
          add_times(at(dv, Hkv, u, g), row[u], at(da, Hq, t, h), hd);
        }
        for (std::size_t u = 0; u <= t; ++u) {
          const float ds = scale * row[u] * (dp[u] - projection);
          add_times(at(dq, Hq, t, h), ds, at(k, Hkv, u, g), hd);
          add_times(at(dk, Hkv, u, g), ds, at(q, Hq, t, h), hd);
        }
      }
    }
  }
};

// A layer and what it remembers of its last document.
struct Layer {
  Linear q, k, v, o, gate, up, down;
  Norm attention_norm, query_norm, key_norm, ff_norm;

  void resize(const tt_config& c) {
    const auto d = static_cast<std::size_t>(c.d), ff = static_cast<std::size_t>(c.ff),
               hd = static_cast<std::size_t>(c.hd);
    const std::size_t wide = static_cast<std::size_t>(c.Hq) * hd,
                      narrow = static_cast<std::size_t>(c.Hkv) * hd;
    q.resize(wide, d), k.resize(narrow, d), v.resize(narrow, d), o.resize(d, wide);
    gate.resize(ff, d), up.resize(ff, d), down.resize(d, ff);
    attention_norm.resize(d, c.eps), ff_norm.resize(d, c.eps), query_norm.resize(hd, c.eps),
        key_norm.resize(hd, c.eps);
  }

  void forward(const Heads& heads, Values& x) {
    x1 = x;
    h1 = attention_norm.forward(x1);
    raw_q = q.forward(h1), raw_k = k.forward(h1), value = v.forward(h1);
    query = raw_q, key = raw_k;
    heads.rotate(query, heads.Hq, 1), heads.rotate(key, heads.Hkv, 1);
    a = heads.attend(query, key, value, p);
    add(x, o.forward(a));
    x2 = x;
    h2 = ff_norm.forward(x2);
    g = gate.forward(h2), u = up.forward(h2), s = g;
    for (std::size_t i = 0; i < s.size(); ++i) s[i] = g[i] / (1 + std::exp(-g[i])) * u[i];
    add(x, down.forward(s));
  }

  // dx: the gradient of the output, then of the input.
  void backward(const Heads& heads, Values& dx) {
    Values ds(s.size()), dg(s.size()), du(s.size()), dh(x1.size());
    down.backward(s, dx, ds);
    for (std::size_t i = 0; i < s.size(); ++i) {
      const float sigmoid = 1 / (1 + std::exp(-g[i]));
      du[i] = ds[i] * g[i] * sigmoid;
      dg[i] = ds[i] * u[i] * sigmoid * (1 + g[i] * (1 - sigmoid));
    }
    gate.backward(h2, dg, dh);
    up.backward(h2, du, dh);
    ff_norm.backward(x2, dh, dx);
    Values da(a.size()), dq(query.size()), dk(key.size()), dv(value.size()), draw_q(query.size()),
        draw_k(key.size());
    o.backward(a, dx, da);
    heads.attend_back(query, key, value, p, da, dq, dk, dv);
    heads.rotate(dq, heads.Hq, -1), heads.rotate(dk, heads.Hkv, -1);
    draw_q = dq, draw_k = dk;
    std::fill(dh.begin(), dh.end(), 0.0f);
    q.backward(h1, draw_q, dh);
    k.backward(h1, draw_k, dh);
    v.backward(h1, dv, dh);
    attention_norm.backward(x1, dh, dx);
  }

 private:
  static void add(Values& x, const Values& y) { add_times(x.data(), 1, y.data(), x.size()); }
  Values x1, h1, raw_q, raw_k, query, key, value, p, a, x2, h2, g, u, s;
};

class Model {
 public:
  explicit Model(const tt_config& c)
      : c_(c),
        T_(static_cast<std::size_t>(c.T)),
        d_(static_cast<std::size_t>(c.d)),
        V_(static_cast<std::size_t>(c.V)),
        heads_{T_, static_cast<std::size_t>(c.Hq), static_cast<std::size_t>(c.Hkv),
               static_cast<std::size_t>(c.hd), c.theta},
        layers_(static_cast<std::size_t>(c.L)) {
    embedding_.resize(V_, d_);
    for (Layer& l : layers_) l.resize(c);
    final_norm_.resize(d_, c.eps);
  }

  // In the blob's order.
  template <class F>
  void each_matrix(F f) {
    f(embedding_);
    for (Layer& l : layers_) f(l.q), f(l.k), f(l.v), f(l.o), f(l.gate), f(l.up), f(l.down);
  }
  template <class F>
  void each_norm(F f) {
    for (Layer& l : layers_) f(l.attention_norm), f(l.query_norm), f(l.key_norm), f(l.ff_norm);
    f(final_norm_);
  }

  void randomise(std::uint64_t seed) {
    each_matrix([&](Linear& m) {
      const float scale = &m == &embedding_ ? 0.05f : 0.1f;
      for (float& w : m.p.value) w = scale * normal(seed);
    });
  }
  void round() {
    each_matrix([](Linear& m) { m.round(); });
  }

  Values logits(const std::uint16_t* tokens) {
    x_.resize(T_ * d_);
    for (std::size_t t = 0; t < T_; ++t)
      std::copy_n(&embedding_.used[tokens[t] * d_], d_, &x_[t * d_]);
    for (Layer& l : layers_) l.forward(heads_, x_);
    h_ = final_norm_.forward(x_);
    return embedding_.forward(h_);
  }

  // Adds the gradient of a document's mean loss.
  void learn(const std::uint16_t* tokens) {
    Values y = logits(tokens);
    for (std::size_t t = 0; t < T_; ++t) {
      float* row = &y[t * V_];
      if (t + 1 == T_) {
        std::fill_n(row, V_, 0.0f);
        break;
      }
      const float most = *std::max_element(row, row + V_);
      float total = 0;
      for (std::size_t v = 0; v < V_; ++v) total += row[v] = std::exp(row[v] - most);
      for (std::size_t v = 0; v < V_; ++v) row[v] /= total * static_cast<float>(T_ - 1);
      row[tokens[t + 1]] -= 1 / static_cast<float>(T_ - 1);
    }
    Values dh(h_.size()), dx(h_.size());
    embedding_.backward(h_, y, dh);
    final_norm_.backward(x_, dh, dx);
    for (std::size_t l = layers_.size(); l-- > 0;) layers_[l].backward(heads_, dx);
    for (std::size_t t = 0; t < T_; ++t)
      add_times(&embedding_.p.gradient[tokens[t] * d_], 1, &dx[t * d_], d_);
  }

  double gradient_norm() {
    double total = 0;
    const auto add = [&](const Parameter& p) {
      for (const float g : p.gradient) total += static_cast<double>(g) * g;
    };
    each_matrix([&](Linear& m) { add(m.p); });
    each_norm([&](Norm& n) { add(n.p); });
    return std::sqrt(total);
  }

  void adam(const Schedule& s) {
    each_matrix([&](Linear& m) { m.p.adam(s, 2e-3f); });
    each_norm([&](Norm& n) { n.p.adam(s, 1e-2f); });
  }

  void write(std::uint8_t* blob) {
    each_matrix([&](Linear& m) {
      for (std::size_t i = 0; i < m.used.size(); i += kBlock, blob += kBytes)
        pack_block(&m.p.value[i], blob);
    });
    each_norm([&](Norm& n) {
      std::memcpy(blob, n.p.value.data(), n.p.value.size() * 4);
      blob += n.p.value.size() * 4;
    });
  }

  void read(const std::uint8_t* blob) {
    each_matrix([&](Linear& m) {
      for (std::size_t i = 0; i < m.used.size(); i += kBlock, blob += kBytes)
        unpack_block(blob, &m.used[i]);
    });
    each_norm([&](Norm& n) {
      std::memcpy(n.p.value.data(), blob, n.p.value.size() * 4);
      blob += n.p.value.size() * 4;
    });
  }

 private:
  static std::uint64_t next(std::uint64_t& state) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
  // The sum of twelve uniforms is close enough to a normal.
  static float normal(std::uint64_t& state) {
    if (state == 0) state = 0x9e3779b97f4a7c15ull;
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(next(state) >> 11) * 0x1p-53;
    return static_cast<float>(sum);
  }

  tt_config c_;
  std::size_t T_, d_, V_;
  Heads heads_;
  Linear embedding_;
  std::vector<Layer> layers_;
  Norm final_norm_;
  Values x_, h_;
};

void train(Model& model, const tt_config& c, const std::uint16_t* docs, std::int64_t n_docs,
           const tt_budget& budget) {
  constexpr std::int64_t kBatch = 4;
  const auto start = std::chrono::steady_clock::now();
  const double per_step = static_cast<double>(kBatch) * c.T,
               most = 0.375 * static_cast<double>(budget.max_tokens);
  double last = 0, longest = 0;
  for (std::int64_t step = 0; n_docs > 0 && per_step * static_cast<double>(step + 1) <= most;
       ++step) {
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    longest = std::max(longest, elapsed - last);
    last = elapsed;
    if (elapsed + 2 * longest > 0.95 * budget.seconds) break;
    const double progress = per_step * static_cast<double>(step) / most;
    model.round();
    for (std::int64_t i = 0; i < kBatch; ++i)
      model.learn(docs + (step * kBatch + i) % n_docs * c.T);
    Schedule s;
    s.step = static_cast<int>(step + 1);
    s.rate = static_cast<float>(progress < 0.05 ? progress / 0.05 + 0.02 : (1 - progress) / 0.95);
    s.factor = static_cast<float>(1 / std::max(static_cast<double>(kBatch), model.gradient_norm()));
    model.adam(s);
  }
}

bool valid(const tt_config* c) {
  if (c == nullptr || c->V <= 0 || c->V > 65536 || c->d <= 0 || c->L <= 0 || c->Hq <= 0 ||
      c->Hkv <= 0)
    return false;
  if (c->hd <= 0 || c->hd % 2 != 0 || c->ff <= 0 || c->T < 2 || c->Hq % c->Hkv != 0) return false;
  return c->d % 128 == 0 && static_cast<std::int64_t>(c->Hq) * c->hd % 128 == 0 &&
         c->ff % 128 == 0 && (c->tied == 0 || c->tied == 1);
}

bool valid_matrix(std::int64_t rows, std::int64_t cols, const void* a, const void* b) {
  return rows >= 0 && cols >= 0 && cols % 128 == 0 &&
         (rows * cols == 0 || (a != nullptr && b != nullptr));
}

}  // namespace

extern "C" std::size_t tt_blob_bytes(const tt_config* c) {
  if (!valid(c)) return 0;
  const auto n = [](std::int64_t rows, std::int64_t cols) {
    return static_cast<std::size_t>(rows * cols) / kBlock * kBytes;
  };
  const std::int64_t wide = std::int64_t{c->Hq} * c->hd, narrow = std::int64_t{c->Hkv} * c->hd;
  const std::size_t layer =
      n(wide, c->d) + 2 * n(narrow, c->d) + n(c->d, wide) + 2 * n(c->ff, c->d) + n(c->d, c->ff);
  const std::int64_t norms = std::int64_t{c->L} * (2 * std::int64_t{c->d} + 2 * std::int64_t{c->hd}) + c->d;
  return static_cast<std::size_t>(2 - c->tied) * n(c->V, c->d) +
         static_cast<std::size_t>(c->L) * layer + static_cast<std::size_t>(norms) * 4;
}

extern "C" int tt_train(assay_ctx*, const tt_config* c, const std::uint16_t* docs,
                        std::int64_t n_docs, const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || (n_docs > 0 && docs == nullptr) || budget == nullptr ||
      blob == nullptr)
    return ASSAY_EINVAL;
  if (c->tied == 0) return ASSAY_ENOTSUP;
  Model model(*c);
  model.randomise(budget->seed + 0x9e3779b97f4a7c15ull);
  train(model, *c, docs, n_docs, *budget);
  model.write(static_cast<std::uint8_t*>(blob));
  return ASSAY_OK;
}

extern "C" int tt_quantize(assay_ctx*, std::int64_t rows, std::int64_t cols, const float* w,
                           std::uint8_t* blocks) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  for (std::int64_t i = 0; i < rows * cols; i += 128, blocks += kBytes) pack_block(w + i, blocks);
  return ASSAY_OK;
}

extern "C" int tt_dequantize(assay_ctx*, std::int64_t rows, std::int64_t cols,
                             const std::uint8_t* blocks, float* w) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  for (std::int64_t i = 0; i < rows * cols; i += 128, blocks += kBytes) unpack_block(blocks, w + i);
  return ASSAY_OK;
}

extern "C" int tt_linear(assay_ctx* ctx, std::int64_t M, std::int64_t rows, std::int64_t cols,
                         const float* x, const std::uint8_t* blocks, const float* dy, float* y,
                         float* dx, float* dw_latent) {
  if (M < 0 || !valid_matrix(rows, cols, blocks, dw_latent)) return ASSAY_EINVAL;
  if (M * cols > 0 && (x == nullptr || dx == nullptr)) return ASSAY_EINVAL;
  if (M * rows > 0 && (dy == nullptr || y == nullptr)) return ASSAY_EINVAL;
  const auto n = static_cast<std::size_t>(cols);
  Values w(static_cast<std::size_t>(rows * cols));
  tt_dequantize(ctx, rows, cols, blocks, w.data());
  std::fill_n(dx, M * cols, 0.0f);
  std::fill_n(dw_latent, rows * cols, 0.0f);
  for (std::int64_t m = 0; m < M; ++m) {
    for (std::int64_t r = 0; r < rows; ++r) {
      y[m * rows + r] = dot(x + m * cols, w.data() + r * cols, n);
      add_times(dx + m * cols, dy[m * rows + r], w.data() + r * cols, n);
      add_times(dw_latent + r * cols, dy[m * rows + r], x + m * cols, n);
    }
  }
  return ASSAY_OK;
}

extern "C" int tt_logits(assay_ctx*, const tt_config* c, const void* blob,
                         const std::uint16_t* docs, std::int64_t n_docs, float* logits) {
  if (!valid(c) || n_docs < 0 || blob == nullptr ||
      (n_docs > 0 && (docs == nullptr || logits == nullptr)))
    return ASSAY_EINVAL;
  if (c->tied == 0) return ASSAY_ENOTSUP;
  Model model(*c);
  model.read(static_cast<const std::uint8_t*>(blob));
  for (std::int64_t i = 0; i < n_docs; ++i) {
    const Values y = model.logits(docs + i * c->T);
    logits = std::copy(y.begin(), y.end(), logits);
  }
  return ASSAY_OK;
}
