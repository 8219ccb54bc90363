// The kernels of the plain CUDA implementation: one for each operation and for its gradient.
#pragma once

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

namespace {

constexpr int kThreads = 128;
constexpr std::int64_t kBlock = 128, kBytes = 34;  // weights and bytes of a block

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// --- blocks ---

__device__ __half scale_of(const float* w) {
  double mean = 0;
  for (std::int64_t j = 0; j < kBlock; ++j) mean += fabs(static_cast<double>(w[j])) / kBlock;
  return __double2half(mean < 65504 ? mean : 65504);
}

__device__ int code_of(float w, float scale) {
  const float half = scale / 2;
  return half > 0 && w > half ? 2 : half > 0 && w < -half ? 0 : 1;
}

__global__ void pack(std::int64_t n_blocks, const float* w, std::uint8_t* blocks) {
  const std::int64_t block = thread_index();
  if (block >= n_blocks) return;
  w += block * kBlock;
  blocks += block * kBytes;
  const __half scale = scale_of(w);
  blocks[0] = static_cast<std::uint8_t>(__half_as_ushort(scale));
  blocks[1] = static_cast<std::uint8_t>(__half_as_ushort(scale) >> 8);
  for (int i = 0; i < kBlock / 4; ++i) {
    int codes = 0;
    for (int j = 0; j < 4; ++j) codes |= code_of(w[4 * i + j], __half2float(scale)) << 2 * j;
    blocks[2 + i] = static_cast<std::uint8_t>(codes);
  }
}

__global__ void unpack(std::int64_t weights, const std::uint8_t* blocks, float* w) {
  const std::int64_t i = thread_index();
  if (i >= weights) return;
  const std::uint8_t* block = blocks + i / kBlock * kBytes;
  const auto bits = static_cast<unsigned short>(block[0] | block[1] << 8);
  const auto j = static_cast<int>(i % kBlock);
  w[i] = ((block[2 + j / 4] >> j % 4 * 2 & 3) - 1) * __half2float(__ushort_as_half(bits));
}

// What the blocks of the latent weights would say.
__global__ void round_weights(std::int64_t n_blocks, const float* latent, float* used) {
  const std::int64_t block = thread_index();
  if (block >= n_blocks) return;
  const float scale = __half2float(scale_of(latent + block * kBlock));
  for (std::int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
    used[i] = static_cast<float>(code_of(latent[i], scale) - 1) * scale;
  }
}

// --- products ---

// Element (r, c) is data[r row + c column].
struct View {
  const float* data;
  std::int64_t row, column;
  __device__ float at(std::int64_t r, std::int64_t c) const { return data[r * row + c * column]; }
};

// c [M, N] = a [M, K] b [K, N], or is increased by it.
__global__ void product(std::int64_t M, std::int64_t N, std::int64_t K, View a, View b, float* c,
                        bool add) {
  const std::int64_t at = thread_index();
  if (at >= M * N) return;
  float sum = 0;
  for (std::int64_t k = 0; k < K; ++k) sum += a.at(at / N, k) * b.at(k, at % N);
  c[at] = add ? c[at] + sum : sum;
}

// --- operations of the model and their gradients ---

__global__ void embed(std::int64_t n, std::int64_t d, const std::int32_t* tokens,
                      const float* embedding, float* x) {
  const std::int64_t i = thread_index();
  if (i < n * d) x[i] = embedding[tokens[i / d] * d + i % d];
}

__global__ void embed_back(std::int64_t n, std::int64_t V, std::int64_t d,
                           const std::int32_t* tokens, const float* dx, float* gradient) {
  const std::int64_t at = thread_index();
  if (at >= V * d) return;
  for (std::int64_t t = 0; t < n; ++t) {
    if (tokens[t] == at / d) gradient[at] += dx[t * d + at % d];
  }
}

// Root mean square norm of rows of n values. Keeps the reciprocal roots.
__global__ void norm(std::int64_t rows, std::int64_t n, float eps, const float* x, const float* w,
                     float* y, float* roots) {
  const std::int64_t row = thread_index();
  if (row >= rows) return;
  float squares = 0;
  for (std::int64_t i = row * n; i < (row + 1) * n; ++i) squares += x[i] * x[i];
  roots[row] = 1 / sqrtf(squares / static_cast<float>(n) + eps);
  for (std::int64_t i = 0; i < n; ++i) y[row * n + i] = x[row * n + i] * roots[row] * w[i];
}

// dx is increased.
__global__ void norm_back(std::int64_t rows, std::int64_t n, const float* x, const float* w,
                          const float* roots, const float* dy, float* dx) {
  const std::int64_t row = thread_index();
  if (row >= rows) return;
  const float root = roots[row];
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += dy[row * n + i] * w[i] * x[row * n + i];
  const float projection = sum * root * root / static_cast<float>(n);
  for (std::int64_t i = 0; i < n; ++i) {
    dx[row * n + i] += root * (dy[row * n + i] * w[i] - x[row * n + i] * projection);
  }
}

__global__ void norm_weight_back(std::int64_t rows, std::int64_t n, const float* x,
                                 const float* roots, const float* dy, float* gradient) {
  const std::int64_t column = thread_index();
  if (column >= n) return;
  for (std::int64_t row = 0; row < rows; ++row) {
    gradient[column] += dy[row * n + column] * x[row * n + column] * roots[row];
  }
}

// Turns the heads of n rows, in place; direction -1 turns back. turns [T, hd / 2]: (cos, sin).
__global__ void rotate(std::int64_t n, std::int64_t T, std::int64_t heads, std::int64_t hd,
                       const float2* turns, float direction, float* x) {
  const std::int64_t half = hd / 2, at = thread_index();
  if (at >= n * heads * half) return;
  const std::int64_t i = at % half, head = at / half;
  const float2 turn = turns[head / heads % T * half + i];
  float *a = x + head * hd + i, *b = a + half;
  const float old = *a, sine = direction * turn.y;
  *a = old * turn.x - *b * sine;
  *b = old * sine + *b * turn.x;
}

struct Heads {
  std::int64_t docs, T, Hq, Hkv, hd;
  float scale;

  // A query: document, head, position.
  struct Place {
    std::int64_t doc, head, t;
  };
  __device__ Place place(std::int64_t row) const { return {row / T / Hq, row / T % Hq, row % T}; }
  __device__ std::int64_t query(const Place& p) const {
    return ((p.doc * T + p.t) * Hq + p.head) * hd;
  }
  __device__ std::int64_t key(std::int64_t doc, std::int64_t u, std::int64_t head) const {
    return ((doc * T + u) * Hkv + head / (Hq / Hkv)) * hd;
  }
};

__device__ float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// p [docs, Hq, T, T] gets the probabilities, a the heads' results.
__global__ void attend(Heads s, const float* q, const float* k, const float* v, float* p,
                       float* a) {
  const std::int64_t row = thread_index();
  if (row >= s.docs * s.Hq * s.T) return;
  const Heads::Place at = s.place(row);
  p += row * s.T;
  float most = -INFINITY, total = 0;
  for (std::int64_t u = 0; u <= at.t; ++u) {
    p[u] = s.scale * dot(q + s.query(at), k + s.key(at.doc, u, at.head), s.hd);
    most = fmaxf(most, p[u]);
  }
  for (std::int64_t u = 0; u <= at.t; ++u) total += p[u] = expf(p[u] - most);
  for (std::int64_t u = 0; u <= at.t; ++u) p[u] /= total;
  for (std::int64_t d = 0; d < s.hd; ++d) {
    float sum = 0;
    for (std::int64_t u = 0; u <= at.t; ++u) sum += p[u] * v[s.key(at.doc, u, at.head) + d];
    a[s.query(at) + d] = sum;
  }
}

// ds, the gradients of the scores times the scale, and dq.
__global__ void attend_back_queries(Heads s, const float* k, const float* v, const float* p,
                                    const float* da, float* ds, float* dq) {
  const std::int64_t row = thread_index();
  if (row >= s.docs * s.Hq * s.T) return;
  const Heads::Place at = s.place(row);
  p += row * s.T;
  ds += row * s.T;
  float projection = 0;
  for (std::int64_t u = 0; u <= at.t; ++u) {
    ds[u] = dot(da + s.query(at), v + s.key(at.doc, u, at.head), s.hd);
    projection += p[u] * ds[u];
  }
  for (std::int64_t u = 0; u <= at.t; ++u) ds[u] = s.scale * p[u] * (ds[u] - projection);
  for (std::int64_t d = 0; d < s.hd; ++d) {
    float sum = 0;
    for (std::int64_t u = 0; u <= at.t; ++u) sum += ds[u] * k[s.key(at.doc, u, at.head) + d];
    dq[s.query(at) + d] = sum;
  }
}

// dk and dv of an element of a key, over the queries of all heads that read it.
__global__ void attend_back_keys(Heads s, const float* q, const float* p, const float* ds,
                                 const float* da, float* dk, float* dv) {
  const std::int64_t at = thread_index();
  if (at >= s.docs * s.T * s.Hkv * s.hd) return;
  const std::int64_t d = at % s.hd, kv = at / s.hd % s.Hkv, u = at / s.hd / s.Hkv % s.T;
  const std::int64_t doc = at / s.hd / s.Hkv / s.T, group = s.Hq / s.Hkv;
  float key = 0, value = 0;
  for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head) {
    for (std::int64_t t = u; t < s.T; ++t) {
      const std::int64_t pair = ((doc * s.Hq + head) * s.T + t) * s.T + u;
      const std::int64_t query = s.query({doc, head, t}) + d;
      key += ds[pair] * q[query];
      value += p[pair] * da[query];
    }
  }
  dk[at] = key;
  dv[at] = value;
}

__global__ void gate_up(std::int64_t n, const float* g, const float* u, float* s) {
  const std::int64_t i = thread_index();
  if (i < n) s[i] = g[i] / (1 + expf(-g[i])) * u[i];
}

__global__ void gate_up_back(std::int64_t n, const float* g, const float* u, const float* ds,
                             float* dg, float* du) {
  const std::int64_t i = thread_index();
  if (i >= n) return;
  const float sigmoid = 1 / (1 + expf(-g[i]));
  du[i] = ds[i] * g[i] * sigmoid;
  dg[i] = ds[i] * u[i] * sigmoid * (1 + g[i] * (1 - sigmoid));
}

// Logits become the gradient of their document's mean loss.
__global__ void loss_back(std::int64_t n, std::int64_t T, std::int64_t V,
                          const std::int32_t* tokens, float* logits) {
  const std::int64_t row = thread_index();
  if (row >= n) return;
  logits += row * V;
  const bool last = row % T == T - 1;
  float most = -INFINITY, total = 0;
  for (std::int64_t v = 0; v < V; ++v) most = fmaxf(most, logits[v]);
  for (std::int64_t v = 0; v < V; ++v) total += expf(logits[v] - most);
  for (std::int64_t v = 0; v < V; ++v) {
    const float target = !last && v == tokens[row + 1] ? 1.0f : 0.0f;
    logits[v] = last ? 0.0f : (expf(logits[v] - most) / total - target) / static_cast<float>(T - 1);
  }
}

// --- the optimiser ---

// The factor of the gradients of `batch` documents: their mean, or a norm of 1 where that is less.
// One thread.
__global__ void gradient_factor(std::int64_t n, float batch, const float* gradient, float* factor) {
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += static_cast<double>(gradient[i]) * gradient[i];
  *factor = 1 / fmaxf(batch, sqrtf(static_cast<float>(squares)));
}

struct Schedule {
  float rate, correct1, correct2;  // learning rate; 1 - beta^step
};

// Parameters from `matrices` on are norms. Clears the gradients.
__global__ void adam(std::int64_t n, std::int64_t matrices, Schedule s, const float* factor,
                     float* value, float* gradient, float* first, float* second) {
  constexpr float kBeta1 = 0.9f, kBeta2 = 0.98f;
  const std::int64_t i = thread_index();
  if (i >= n) return;
  const float g = gradient[i] * *factor;
  first[i] = kBeta1 * first[i] + (1 - kBeta1) * g;
  second[i] = kBeta2 * second[i] + (1 - kBeta2) * g * g;
  const float rate = s.rate * (i < matrices ? 2e-3f : 1e-2f);
  value[i] -= rate * (first[i] / s.correct1) / (sqrtf(second[i] / s.correct2) + 1e-8f);
  gradient[i] = 0;
}

}  // namespace
