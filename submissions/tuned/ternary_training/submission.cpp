// Sample entrant of assay, not a model's answer: fast and correct. Every thread has a replica of
// the model and takes its share of the documents of a step; then each thread owns every other
// matrix: it adds the replicas' gradients, moves and rounds the weights, and gives the result to
// all. Products in tiles of 8 rows by 32 columns (4 by 16 without AVX-512) straight from row-major
// memory, with weights kept both ways round; attention as products too. Slower than the expert
// mainly because nothing is packed and the upper half of the scores is computed.
#pragma GCC optimize("no-math-errno", "no-trapping-math")

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
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
  const unsigned bits = to_half(mean);
  const double half = half_value(bits) / 2;
  std::fill_n(block, kBytes, std::uint8_t{0});
  block[0] = static_cast<std::uint8_t>(bits & 255);
  block[1] = static_cast<std::uint8_t>(bits >> 8);
  for (std::size_t j = 0; j < kBlock; ++j) {
    unsigned code = 1;
    if (half > 0 && w[j] > half) code = 2;
    if (half > 0 && w[j] < -half) code = 0;
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

// As wide as the registers, and as many rows of a product as these hold the sums of.
#if defined(__AVX512F__)
constexpr std::size_t kLanes = 16, kRows = 8;
#else
constexpr std::size_t kLanes = 8, kRows = 4;
#endif
typedef float Lanes __attribute__((vector_size(4 * kLanes)));

Lanes load(const float* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, Lanes v) { std::memcpy(p, &v, sizeof v); }

float dot(const float* a, const float* b, std::size_t n) {
  Lanes part{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) part += load(a + i) * load(b + i);
  float total = 0;
  for (; i < n; ++i) total += a[i] * b[i];
  for (std::size_t j = 0; j < kLanes; ++j) total += part[j];
  return total;
}

void add_times(float* y, float a, const float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// e^x for x <= 0, to a few units of roundoff: 2^n times a polynomial of the rest.
float fast_exp(float x) {
  x = std::max(x, -87.0f);
  const float n = static_cast<float>(static_cast<int>(x * 1.44269504f - 0.5f));
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  for (const float c :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    p = p * r + c;
  p = p * r * r + r + 1;
  const std::int32_t bits = (static_cast<std::int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, 4);
  return p * power;
}

float sigmoid_of(float z) {
  const float e = fast_exp(-std::abs(z));
  return z >= 0 ? 1 / (1 + e) : e / (1 + e);
}

// C [M, N] += A B. A's element (m, k) stands at a[m rs + k cs]; B and C are row-major.
struct Product {
  std::size_t M, N, K;
  const float* a;
  std::size_t rs, cs;
  const float* b;
  std::size_t ldb;
  float* c;
  std::size_t ldc;
};

template <std::size_t R>
void tile(const Product& p, std::size_t m, std::size_t n) {
  Lanes s[R][2] = {};
  const float *a = p.a + m * p.rs, *b = p.b + n;
  for (std::size_t k = 0; k < p.K; ++k, a += p.cs, b += p.ldb) {
    const Lanes b0 = load(b), b1 = load(b + kLanes);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) {
      const Lanes v = Lanes{} + a[r * p.rs];
      s[r][0] += v * b0;
      s[r][1] += v * b1;
    }
  }
  for (std::size_t r = 0; r < R; ++r) {
    float* c = p.c + (m + r) * p.ldc + n;
    store(c, load(c) + s[r][0]);
    store(c + kLanes, load(c + kLanes) + s[r][1]);
  }
}

void multiply(const Product& p) {
  constexpr std::size_t kColumns = 2 * kLanes;
  const std::size_t whole = p.N / kColumns * kColumns;
  for (std::size_t n = 0; n < whole; n += kColumns) {
    std::size_t m = 0;
    for (; m + kRows <= p.M; m += kRows) tile<kRows>(p, m, n);
    for (; m < p.M; ++m) tile<1>(p, m, n);
  }
  if (whole == p.N) return;
  for (std::size_t m = 0; m < p.M; ++m) {
    for (std::size_t k = 0; k < p.K; ++k) {
      add_times(p.c + m * p.ldc + whole, p.a[m * p.rs + k * p.cs], p.b + k * p.ldb + whole,
                p.N - whole);
    }
  }
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
  Values used, turned;  // what the blocks of the latent weights say, and its transpose

  void resize(std::size_t rows, std::size_t columns) {
    out = rows;
    in = columns;
    p.resize(out * in);
    used.resize(out * in);
    turned.resize(out * in);
  }
  void round() {
    for (std::size_t i = 0; i < used.size(); i += kBlock) {
      float total = 0;
      for (std::size_t j = 0; j < kBlock; ++j) total += std::abs(p.value[i + j]);
      const unsigned bits = to_half(total / kBlock);
      const auto s = static_cast<float>(half_value(bits)), half = s / 2;
      for (std::size_t j = 0; j < kBlock; ++j) {
        const float w = p.value[i + j];
        used[i + j] = w > half ? s : w < -half ? -s : 0.0f;
      }
    }
    turn();
  }
  void turn() {
    for (std::size_t o = 0; o < out; o += 16) {
      const std::size_t end = std::min(out, o + 16);
      for (std::size_t i = 0; i < in; ++i) {
        for (std::size_t r = o; r < end; ++r) turned[i * out + r] = used[r * in + i];
      }
    }
  }
  Values forward(const Values& x) const {
    Values y(x.size() / in * out);
    multiply({x.size() / in, out, in, x.data(), in, 1, turned.data(), out, y.data(), out});
    return y;
  }
  // Adds to dx.
  void backward(const Values& x, const Values& dy, Values& dx) {
    const std::size_t T = x.size() / in;
    multiply({T, in, out, dy.data(), out, 1, used.data(), in, dx.data(), in});
    multiply({out, in, T, dy.data(), 1, out, x.data(), in, p.gradient.data(), in});
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
          float &a = x[(t * heads + h) * hd + i], &b = x[(t * heads + h) * hd + hd / 2 + i];
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

  // A head of every position, turned: [hd, T].
  Values turned(const Values& x, std::size_t heads, std::size_t h) const {
    Values y(hd * T);
    for (std::size_t t = 0; t < T; ++t) {
      for (std::size_t i = 0; i < hd; ++i) y[i * T + t] = x[(t * heads + h) * hd + i];
    }
    return y;
  }

  // Probabilities [Hq, T, T] and what the heads return.
  Values attend(const Values& q, const Values& k, const Values& v, Values& p) const {
    Values a(T * Hq * hd);
    p.assign(Hq * T * T, 0.0f);
    const float scale = 1 / std::sqrt(static_cast<float>(hd));
    for (std::size_t h = 0; h < Hq; ++h) {
      const std::size_t g = h / (Hq / Hkv);
      float* scores = &p[h * T * T];
      multiply({T, T, hd, at(q, Hq, 0, h), Hq * hd, 1, turned(k, Hkv, g).data(), T, scores, T});
      for (std::size_t t = 0; t < T; ++t) {
        float *row = scores + t * T, most = row[0], total = 0;
        for (std::size_t u = 1; u <= t; ++u) most = std::max(most, row[u]);
        for (std::size_t u = 0; u <= t; ++u) row[u] = fast_exp((row[u] - most) * scale);
        for (std::size_t u = 0; u <= t; ++u) total += row[u];
        for (std::size_t u = 0; u <= t; ++u) row[u] /= total;
        std::fill(row + t + 1, row + T, 0.0f);
      }
      multiply({T, hd, T, scores, T, 1, at(v, Hkv, 0, g), Hkv * hd, at(a, Hq, 0, h), Hq * hd});
    }
    return a;
  }

  void attend_back(const Values& q, const Values& k, const Values& v, const Values& p,
                   const Values& da, Values& dq, Values& dk, Values& dv) const {
    const float scale = 1 / std::sqrt(static_cast<float>(hd));
    Values ds(T * T);
    for (std::size_t h = 0; h < Hq; ++h) {
      const std::size_t g = h / (Hq / Hkv);
      const float* rows = &p[h * T * T];
      multiply({T, hd, T, rows, 1, T, at(da, Hq, 0, h), Hq * hd, at(dv, Hkv, 0, g), Hkv * hd});
      std::fill(ds.begin(), ds.end(), 0.0f);
      multiply({T, T, hd, at(da, Hq, 0, h), Hq * hd, 1, turned(v, Hkv, g).data(), T, ds.data(), T});
      for (std::size_t t = 0; t < T; ++t) {
        const float projection = dot(rows + t * T, &ds[t * T], T);
        for (std::size_t u = 0; u < T; ++u)
          ds[t * T + u] = scale * rows[t * T + u] * (ds[t * T + u] - projection);
      }
      multiply({T, hd, T, ds.data(), T, 1, at(k, Hkv, 0, g), Hkv * hd, at(dq, Hq, 0, h), Hq * hd});
      multiply({T, hd, T, ds.data(), 1, T, at(q, Hq, 0, h), Hq * hd, at(dk, Hkv, 0, g), Hkv * hd});
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
    query = query_norm.forward(raw_q), key = key_norm.forward(raw_k);
    heads.rotate(query, heads.Hq, 1), heads.rotate(key, heads.Hkv, 1);
    a = heads.attend(query, key, value, p);
    add(x, o.forward(a));
    x2 = x;
    h2 = ff_norm.forward(x2);
    g = gate.forward(h2), u = up.forward(h2), s = g;
    for (std::size_t i = 0; i < s.size(); ++i) s[i] = g[i] * sigmoid_of(g[i]) * u[i];
    add(x, down.forward(s));
  }

  // dx: the gradient of the output, then of the input.
  void backward(const Heads& heads, Values& dx) {
    Values ds(s.size()), dg(s.size()), du(s.size()), dh(x1.size());
    down.backward(s, dx, ds);
    for (std::size_t i = 0; i < s.size(); ++i) {
      const float sigmoid = sigmoid_of(g[i]);
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
    query_norm.backward(raw_q, dq, draw_q);
    key_norm.backward(raw_k, dk, draw_k);
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
    if (!c.tied) head_.resize(V_, d_);
    for (Layer& l : layers_) l.resize(c);
    final_norm_.resize(d_, c.eps);
  }

  // In the blob's order.
  template <class F>
  void each_matrix(F f) {
    f(embedding_);
    if (!c_.tied) f(head_);
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
    return (c_.tied ? embedding_ : head_).forward(h_);
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
      for (std::size_t v = 0; v < V_; ++v) row[v] = fast_exp(row[v] - most);
      for (std::size_t v = 0; v < V_; ++v) total += row[v];
      for (std::size_t v = 0; v < V_; ++v) row[v] /= total * static_cast<float>(T_ - 1);
      row[tokens[t + 1]] -= 1 / static_cast<float>(T_ - 1);
    }
    Values dh(h_.size()), dx(h_.size());
    (c_.tied ? embedding_ : head_).backward(h_, y, dh);
    final_norm_.backward(x_, dh, dx);
    for (std::size_t l = layers_.size(); l-- > 0;) layers_[l].backward(heads_, dx);
    for (std::size_t t = 0; t < T_; ++t)
      add_times(&embedding_.p.gradient[tokens[t] * d_], 1, &dx[t * d_], d_);
  }

  // The i-th of n threads' share of the parameters: every n-th matrix and norm.
  template <class F>
  void each_own(std::size_t i, std::size_t n, F f) {
    std::size_t number = 0;
    each_matrix([&](Linear& m) {
      if (number++ % n == i) f(m.p);
    });
    each_norm([&](Norm& norm) {
      if (number++ % n == i) f(norm.p);
    });
  }

  // Moves, rounds and hands on this thread's share. This is the replica that keeps moments.
  void update(std::size_t i, std::size_t n, const Schedule& s,
              std::vector<std::unique_ptr<Model>>& replicas) {
    std::size_t number = 0, other = 0;
    each_matrix([&](Linear& m) {
      if (number++ % n != i) return;
      m.p.adam(s, 2e-3f);
      m.round();
    });
    each_norm([&](Norm& norm) {
      if (number++ % n == i) norm.p.adam(s, 1e-2f);
    });
    for (std::size_t r = 1; r < replicas.size(); ++r) {
      std::vector<Linear*> from;
      each_matrix([&](Linear& m) { from.push_back(&m); });
      other = 0;
      replicas[r]->each_matrix([&](Linear& m) {
        if (other % n == i) m.used = from[other]->used, m.turned = from[other]->turned;
        ++other;
      });
      std::vector<Norm*> norms;
      each_norm([&](Norm& norm) { norms.push_back(&norm); });
      replicas[r]->each_norm([&](Norm& norm) {
        if (other % n == i) norm.p.value = norms[other - from.size()]->p.value;
        ++other;
      });
    }
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
      m.turn();
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
  Linear embedding_, head_;
  std::vector<Layer> layers_;
  Norm final_norm_;
  Values x_, h_;
};

constexpr std::size_t kBatch = 2;  // documents of a step, and so the most threads

class Trainer {
 public:
  Trainer(const tt_config& c, std::size_t threads, const std::uint16_t* docs, std::int64_t n_docs,
          const tt_budget& budget)
      : c_(c),
        threads_(threads),
        docs_(docs),
        n_docs_(n_docs),
        budget_(budget),
        barrier_(static_cast<std::ptrdiff_t>(threads)),
        squares_(threads) {
    for (std::size_t i = 0; i < threads; ++i) {
      replicas_.push_back(std::make_unique<Model>(c));
      replicas_.back()->randomise(budget.seed + 0x9e3779b97f4a7c15ull);
      replicas_.back()->round();
    }
  }

  Model& run() {
    if (!plan()) return *replicas_[0];
    std::vector<std::thread> helpers;
    for (std::size_t i = 1; i < threads_; ++i) helpers.emplace_back([this, i] { work(i); });
    work(0);
    for (std::thread& t : helpers) t.join();
    return *replicas_[0];
  }

 private:
  static constexpr double kPasses = 8;  // over few documents: more learn them by heart

  // Sets the next step's learning rate; false when the budget is used up.
  bool plan() {
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const double per_step = static_cast<double>(kBatch) * c_.T,
                 most = std::min(static_cast<double>(budget_.max_tokens),
                                 kPasses * static_cast<double>(n_docs_) * c_.T);
    const double seconds = 0.95 * budget_.seconds,
                 done = per_step * static_cast<double>(schedule_.step - 1);
    longest_ = std::max(longest_, elapsed - last_);
    last_ = elapsed;
    if (n_docs_ == 0 || done + per_step > most || elapsed + 2 * longest_ > seconds) return false;
    // Early on the clock does not count: a stalled step would change a run that its tokens end.
    const double clock = elapsed > 0.25 * seconds ? elapsed / seconds : 0;
    const double progress = std::max((done + per_step / 2) / most, clock);
    schedule_.rate =
        static_cast<float>(progress < 0.05 ? progress / 0.05 + 0.02 : (1 - progress) / 0.95);
    return true;
  }

  void work(std::size_t i) {
    while (true) {
      for (std::size_t doc = i; doc < kBatch; doc += threads_) {
        const auto number =
            static_cast<std::int64_t>(static_cast<std::size_t>(schedule_.step - 1) * kBatch + doc);
        replicas_[i]->learn(docs_ + number % n_docs_ * c_.T);
      }
      barrier_.arrive_and_wait();
      squares_[i] = add_gradients(i);
      barrier_.arrive_and_wait();
      double total = 0;
      for (const double s : squares_) total += s;
      Schedule s = schedule_;
      s.factor = static_cast<float>(1 / std::max(static_cast<double>(kBatch), std::sqrt(total)));
      replicas_[0]->update(i, threads_, s, replicas_);
      barrier_.arrive_and_wait();
      if (i == 0) {
        ++schedule_.step;
        going_ = plan();
      }
      barrier_.arrive_and_wait();
      if (!going_) return;
    }
  }

  // Into the first replica; returns the sum of squares of this thread's share.
  double add_gradients(std::size_t i) {
    std::vector<Parameter*> sums;
    replicas_[0]->each_own(i, threads_, [&](Parameter& p) { sums.push_back(&p); });
    for (std::size_t r = 1; r < threads_; ++r) {
      std::size_t at = 0;
      replicas_[r]->each_own(i, threads_, [&](Parameter& p) {
        add_times(sums[at++]->gradient.data(), 1, p.gradient.data(), p.gradient.size());
        std::fill(p.gradient.begin(), p.gradient.end(), 0.0f);
      });
    }
    double total = 0;
    for (const Parameter* p : sums) {
      for (std::size_t j = 0; j < p->gradient.size(); j += 128) {
        const std::size_t n = std::min<std::size_t>(128, p->gradient.size() - j);
        total += static_cast<double>(dot(&p->gradient[j], &p->gradient[j], n));
      }
    }
    return total;
  }

  tt_config c_;
  std::size_t threads_;
  const std::uint16_t* docs_;
  std::int64_t n_docs_;
  tt_budget budget_;
  std::barrier<> barrier_;
  std::vector<double> squares_;
  std::vector<std::unique_ptr<Model>> replicas_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Schedule schedule_;
  double last_ = 0, longest_ = 0;
  bool going_ = true;
};

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

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const std::uint16_t* docs,
                        std::int64_t n_docs, const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || (n_docs > 0 && docs == nullptr) || budget == nullptr ||
      blob == nullptr)
    return ASSAY_EINVAL;
  const auto threads = static_cast<std::size_t>(std::max(ctx->nthreads, 1));
  Trainer trainer(*c, std::min(threads, kBatch), docs, n_docs, *budget);
  trainer.run().write(static_cast<std::uint8_t*>(blob));
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
  const auto m = static_cast<std::size_t>(M), n = static_cast<std::size_t>(rows),
             k = static_cast<std::size_t>(cols);
  Linear layer;
  layer.resize(n, k);
  tt_dequantize(ctx, rows, cols, blocks, layer.used.data());
  layer.turn();
  std::fill_n(y, M * rows, 0.0f);
  std::fill_n(dx, M * cols, 0.0f);
  std::fill_n(dw_latent, rows * cols, 0.0f);
  // Threads share the rows of every result.
  const std::size_t threads =
      m * n * k < (1u << 20) ? 1 : static_cast<std::size_t>(std::max(ctx->nthreads, 1));
  const auto part = [&](std::size_t i) {
    const std::size_t m0 = m * i / threads, m1 = m * (i + 1) / threads, n0 = n * i / threads,
                      n1 = n * (i + 1) / threads;
    multiply({m1 - m0, n, k, x + m0 * k, k, 1, layer.turned.data(), n, y + m0 * n, n});
    multiply({m1 - m0, k, n, dy + m0 * n, n, 1, layer.used.data(), k, dx + m0 * k, k});
    // A few hundred rows at a time stay in the cache.
    for (std::size_t b = 0; b < m; b += 256) {
      multiply({n1 - n0, k, std::min<std::size_t>(256, m - b), dy + b * n + n0, 1, n, x + b * k, k,
                dw_latent + n0 * k, k});
    }
  };
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(part, i);
  part(0);
  for (std::thread& t : helpers) t.join();
  return ASSAY_OK;
}

extern "C" int tt_logits(assay_ctx*, const tt_config* c, const void* blob,
                         const std::uint16_t* docs, std::int64_t n_docs, float* logits) {
  if (!valid(c) || n_docs < 0 || blob == nullptr ||
      (n_docs > 0 && (docs == nullptr || logits == nullptr)))
    return ASSAY_EINVAL;
  Model model(*c);
  model.read(static_cast<const std::uint8_t*>(blob));
  for (std::int64_t i = 0; i < n_docs; ++i) {
    const Values y = model.logits(docs + i * c->T);
    logits = std::copy(y.begin(), y.end(), logits);
  }
  return ASSAY_OK;
}
