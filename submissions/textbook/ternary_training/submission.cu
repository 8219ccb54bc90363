// Sample entrant of assay, not a model's answer: what a careful textbook would print, in CUDA. A
// kernel for each operation and for its gradient, all products by one tiled kernel, no atomics.
// Latent fp32 weights, rounded at every step; Adam with warm-up and linear decay on batches of four
// documents.
#include <cuda_fp16.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <new>
#include <vector>

#include "abi.h"

namespace {

constexpr int kWarp = 32, kThreads = 256;
constexpr std::int64_t kBlock = 128, kBytes = 34;  // weights and bytes of a block

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

template <class T>
__device__ T warp_sum(T x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}
__device__ float warp_max(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
  }
  return x;
}

// --- blocks ---

// A warp has a block, a lane four of its weights, which are one byte of codes.
struct Rounded {
  __half scale;
  unsigned codes;
  __device__ float weight(int j) const {
    return (static_cast<int>(codes >> 2 * j & 3) - 1) * __half2float(scale);
  }
};

__device__ Rounded round_block(const float* w) {
  float mine[4];
  double sum = 0;
  for (int j = 0; j < 4; ++j) {
    mine[j] = w[4 * lane() + j];
    sum += fabs(static_cast<double>(mine[j]));
  }
  const double mean = warp_sum(sum) / kBlock;
  Rounded r{__double2half(mean < 65504 ? mean : 65504), 0};
  const float half = __half2float(r.scale) / 2;
  for (int j = 0; j < 4; ++j) {
    const unsigned code = half > 0 && mine[j] > half ? 2 : half > 0 && mine[j] < -half ? 0 : 1;
    r.codes |= code << 2 * j;
  }
  return r;
}

__global__ void pack(std::int64_t n_blocks, const float* w, std::uint8_t* blocks) {
  const std::int64_t block = thread_index() / kWarp;
  if (block >= n_blocks) return;
  const Rounded r = round_block(w + block * kBlock);
  std::uint8_t* out = blocks + block * kBytes;
  const unsigned scale = __half_as_ushort(r.scale);
  if (lane() < 2) out[lane()] = static_cast<std::uint8_t>(scale >> 8 * lane());
  out[2 + lane()] = static_cast<std::uint8_t>(r.codes);
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
  const std::int64_t block = thread_index() / kWarp;
  if (block >= n_blocks) return;
  const Rounded r = round_block(latent + block * kBlock);
  for (int j = 0; j < 4; ++j) used[block * kBlock + 4 * lane() + j] = r.weight(j);
}

// --- products ---

// Element (r, c) is data[r row + c column].
struct View {
  const float* data;
  std::int64_t row, column;
  __device__ float at(std::int64_t r, std::int64_t c) const { return data[r * row + c * column]; }
};

constexpr int kSide = 64, kDepth = 16, kEach = 4,
              kPad = 4;  // a thread has 4 x 4 of a tile of 64 x 64

// c [M, N] = a [M, K] b [K, N], or is increased by it.
__global__ void __launch_bounds__(kThreads)
    product(std::int64_t M, std::int64_t N, std::int64_t K, View a, View b, float* c, bool add) {
  __shared__ __align__(16) float a_tile[kDepth][kSide + kPad], b_tile[kDepth][kSide + kPad];
  const std::int64_t m = static_cast<std::int64_t>(blockIdx.y) * kSide;
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * kSide;
  const int tx = threadIdx.x % (kSide / kEach), ty = threadIdx.x / (kSide / kEach);
  float sum[kEach][kEach] = {};
  for (std::int64_t k = 0; k < K; k += kDepth) {
    for (int at = threadIdx.x; at < kSide * kDepth; at += kThreads) {
      // Neighbouring threads read along the dimension that is contiguous.
      const int ak = a.column == 1 ? at % kDepth : at / kSide;
      const int am = a.column == 1 ? at / kDepth : at % kSide;
      a_tile[ak][am] = m + am < M && k + ak < K ? a.at(m + am, k + ak) : 0.0f;
      const int bk = b.row == 1 ? at % kDepth : at / kSide;
      const int bn = b.row == 1 ? at / kDepth : at % kSide;
      b_tile[bk][bn] = k + bk < K && n + bn < N ? b.at(k + bk, n + bn) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      for (int r = 0; r < kEach; ++r) {
        for (int j = 0; j < kEach; ++j) {
          sum[r][j] += a_tile[d][ty * kEach + r] * b_tile[d][tx * kEach + j];
        }
      }
    }
    __syncthreads();
  }
  for (int r = 0; r < kEach; ++r) {
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t row = m + ty * kEach + r, column = n + tx * kEach + j;
      if (row >= M || column >= N) continue;
      float* out = c + row * N + column;
      *out = add ? *out + sum[r][j] : sum[r][j];
    }
  }
}

// --- operations of the model and their gradients ---

__global__ void embed(std::int64_t n, std::int64_t d, const std::int32_t* tokens,
                      const float* embedding, float* x) {
  const std::int64_t i = thread_index();
  if (i < n * d) x[i] = embedding[tokens[i / d] * d + i % d];
}

// A block for each token of the vocabulary.
__global__ void embed_back(std::int64_t n, std::int64_t d, const std::int32_t* tokens,
                           const float* dx, float* gradient) {
  for (std::int64_t i = threadIdx.x; i < d; i += blockDim.x) {
    float sum = 0;
    for (std::int64_t t = 0; t < n; ++t) {
      if (tokens[t] == static_cast<std::int32_t>(blockIdx.x)) sum += dx[t * d + i];
    }
    gradient[blockIdx.x * d + i] += sum;
  }
}

// Root mean square norm of rows of n values: a warp for each. Keeps the reciprocal roots.
__global__ void norm(std::int64_t rows, std::int64_t n, float eps, const float* x, const float* w,
                     float* y, float* roots) {
  const std::int64_t row = thread_index() / kWarp;
  if (row >= rows) return;
  float squares = 0;
  for (std::int64_t i = lane(); i < n; i += kWarp) squares += x[row * n + i] * x[row * n + i];
  const float root = 1 / sqrtf(warp_sum(squares) / static_cast<float>(n) + eps);
  for (std::int64_t i = lane(); i < n; i += kWarp) y[row * n + i] = x[row * n + i] * root * w[i];
  if (lane() == 0) roots[row] = root;
}

// dx is increased.
__global__ void norm_back(std::int64_t rows, std::int64_t n, const float* x, const float* w,
                          const float* roots, const float* dy, float* dx) {
  const std::int64_t row = thread_index() / kWarp;
  if (row >= rows) return;
  const float root = roots[row];
  float sum = 0;
  for (std::int64_t i = lane(); i < n; i += kWarp) sum += dy[row * n + i] * w[i] * x[row * n + i];
  const float projection = warp_sum(sum) * root * root / static_cast<float>(n);
  for (std::int64_t i = lane(); i < n; i += kWarp) {
    dx[row * n + i] += root * (dy[row * n + i] * w[i] - x[row * n + i] * projection);
  }
}

// A block of 32 x 8 threads for 32 columns.
__global__ void norm_weight_back(std::int64_t rows, std::int64_t n, const float* x,
                                 const float* roots, const float* dy, float* gradient) {
  __shared__ float sums[kThreads / kWarp][kWarp];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + lane();
  const int strip = static_cast<int>(threadIdx.x) / kWarp;
  float sum = 0;
  for (std::int64_t row = strip; column < n && row < rows; row += kThreads / kWarp) {
    sum += dy[row * n + column] * x[row * n + column] * roots[row];
  }
  sums[strip][lane()] = sum;
  __syncthreads();
  if (strip != 0 || column >= n) return;
  for (int s = 1; s < kThreads / kWarp; ++s) sum += sums[s][lane()];
  gradient[column] += sum;
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

  // The query row of a warp: document, head, position.
  struct Place {
    std::int64_t doc, head, t;
  };
  __device__ Place place(std::int64_t warp) const {
    return {warp / T / Hq, warp / T % Hq, warp % T};
  }
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

// A warp for each query. p [docs, Hq, T, T] gets the probabilities, a the heads' results.
__global__ void attend(Heads s, const float* q, const float* k, const float* v, float* p,
                       float* a) {
  const std::int64_t warp = thread_index() / kWarp;
  if (warp >= s.docs * s.Hq * s.T) return;
  const Heads::Place at = s.place(warp);
  p += warp * s.T;
  float most = -INFINITY, total = 0;
  for (std::int64_t u = lane(); u <= at.t; u += kWarp) {
    p[u] = s.scale * dot(q + s.query(at), k + s.key(at.doc, u, at.head), s.hd);
    most = fmaxf(most, p[u]);
  }
  most = warp_max(most);
  for (std::int64_t u = lane(); u <= at.t; u += kWarp) total += p[u] = expf(p[u] - most);
  total = warp_sum(total);
  for (std::int64_t u = lane(); u <= at.t; u += kWarp) p[u] /= total;
  __syncwarp();
  for (std::int64_t d = lane(); d < s.hd; d += kWarp) {
    float sum = 0;
    for (std::int64_t u = 0; u <= at.t; ++u) sum += p[u] * v[s.key(at.doc, u, at.head) + d];
    a[s.query(at) + d] = sum;
  }
}

// A warp for each query: ds, the gradients of the scores times the scale, and dq.
__global__ void attend_back_queries(Heads s, const float* k, const float* v, const float* p,
                                    const float* da, float* ds, float* dq) {
  const std::int64_t warp = thread_index() / kWarp;
  if (warp >= s.docs * s.Hq * s.T) return;
  const Heads::Place at = s.place(warp);
  p += warp * s.T;
  ds += warp * s.T;
  float projection = 0;
  for (std::int64_t u = lane(); u <= at.t; u += kWarp) {
    ds[u] = dot(da + s.query(at), v + s.key(at.doc, u, at.head), s.hd);
    projection += p[u] * ds[u];
  }
  projection = warp_sum(projection);
  for (std::int64_t u = lane(); u <= at.t; u += kWarp) {
    ds[u] = s.scale * p[u] * (ds[u] - projection);
  }
  __syncwarp();
  for (std::int64_t d = lane(); d < s.hd; d += kWarp) {
    float sum = 0;
    for (std::int64_t u = 0; u <= at.t; ++u) sum += ds[u] * k[s.key(at.doc, u, at.head) + d];
    dq[s.query(at) + d] = sum;
  }
}

// A warp for each key: dk and dv, over the queries of all heads that read it.
__global__ void attend_back_keys(Heads s, const float* q, const float* p, const float* ds,
                                 const float* da, float* dk, float* dv) {
  const std::int64_t warp = thread_index() / kWarp;
  if (warp >= s.docs * s.Hkv * s.T) return;
  const std::int64_t u = warp % s.T, kv = warp / s.T % s.Hkv, doc = warp / s.T / s.Hkv;
  const std::int64_t group = s.Hq / s.Hkv;
  for (std::int64_t d = lane(); d < s.hd; d += kWarp) {
    float key = 0, value = 0;
    for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head) {
      for (std::int64_t t = u; t < s.T; ++t) {
        const std::int64_t pair = ((doc * s.Hq + head) * s.T + t) * s.T + u;
        const std::int64_t query = s.query({doc, head, t}) + d;
        key += ds[pair] * q[query];
        value += p[pair] * da[query];
      }
    }
    dk[s.key(doc, u, kv * group) + d] = key;
    dv[s.key(doc, u, kv * group) + d] = value;
  }
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

// Logits become the gradient of their document's mean loss: a warp for each row.
__global__ void loss_back(std::int64_t n, std::int64_t T, std::int64_t V,
                          const std::int32_t* tokens, float* logits) {
  const std::int64_t row = thread_index() / kWarp;
  if (row >= n) return;
  logits += row * V;
  const bool last = row % T == T - 1;
  float most = -INFINITY, total = 0;
  for (std::int64_t v = lane(); v < V; v += kWarp) most = fmaxf(most, logits[v]);
  most = warp_max(most);
  for (std::int64_t v = lane(); v < V; v += kWarp) total += expf(logits[v] - most);
  total = warp_sum(total);
  for (std::int64_t v = lane(); v < V; v += kWarp) {
    const float target = !last && v == tokens[row + 1] ? 1.0f : 0.0f;
    logits[v] = last ? 0.0f : (expf(logits[v] - most) / total - target) / static_cast<float>(T - 1);
  }
}

// --- the optimiser ---

constexpr int kNormBlocks = 64;

__device__ float block_sum(float x) {
  __shared__ float sums[kThreads / kWarp];
  x = warp_sum(x);
  if (lane() == 0) sums[threadIdx.x / kWarp] = x;
  __syncthreads();
  float total = 0;
  for (const float sum : sums) total += sum;
  return total;
}

__global__ void partial_squares(std::int64_t n, const float* x, float* partial) {
  float sum = 0;
  for (std::int64_t i = thread_index(); i < n; i += std::int64_t{kNormBlocks} * kThreads) {
    sum += x[i] * x[i];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// The factor of the gradients of `batch` documents: their mean, or a norm of 1 where that is less.
__global__ void gradient_factor(float batch, const float* partial, float* factor) {
  const float total = block_sum(threadIdx.x < kNormBlocks ? partial[threadIdx.x] : 0.0f);
  if (threadIdx.x == 0) *factor = 1 / fmaxf(batch, sqrtf(total));
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

// --- the host's side ---

unsigned blocks_for(std::int64_t n, std::int64_t each) {
  return static_cast<unsigned>((n + each - 1) / each);
}
unsigned threads(std::int64_t n) { return blocks_for(n, kThreads); }
unsigned warps(std::int64_t n) { return blocks_for(n, kThreads / kWarp); }

int launch_status() { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }

// Device memory that goes back all at once. Throws bad_alloc.
class Arena {
 public:
  explicit Arena(assay_ctx* ctx) : ctx_(ctx) {}
  ~Arena() {
    for (void* p : taken_) ctx_->free(ctx_, p);
  }
  Arena(const Arena&) = delete;

  template <class T = float>
  T* take(std::int64_t n) {
    void* p = ctx_->alloc(ctx_, static_cast<std::size_t>(n) * sizeof(T), 256, 1);
    if (p == nullptr) throw std::bad_alloc();
    taken_.push_back(p);
    return static_cast<T*>(p);
  }
  template <class T = float>
  T* zeros(std::int64_t n) {
    T* p = take<T>(n);
    cudaMemsetAsync(p, 0, static_cast<std::size_t>(n) * sizeof(T), stream());
    return p;
  }
  template <class T>
  void copy(T* to, const T* from, std::int64_t n) {
    cudaMemcpyAsync(to, from, static_cast<std::size_t>(n) * sizeof(T), cudaMemcpyDefault, stream());
  }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(ctx_->stream); }

 private:
  assay_ctx* ctx_;
  std::vector<void*> taken_;
};

void multiply(cudaStream_t stream, std::int64_t M, std::int64_t N, std::int64_t K, View a, View b,
              float* c, bool add) {
  if (M == 0 || N == 0) return;
  product<<<dim3(blocks_for(N, kSide), blocks_for(M, kSide)), kThreads, 0, stream>>>(M, N, K, a, b,
                                                                                     c, add);
}

// y [M, rows] = x [M, cols] w^T, and the two gradients of it. w [rows, cols].
struct Linear {
  std::int64_t rows, cols;
  const float* w;
  float* gradient;

  void forward(cudaStream_t stream, std::int64_t M, const float* x, float* y, bool add) const {
    multiply(stream, M, rows, cols, {x, cols, 1}, {w, 1, cols}, y, add);
  }
  void input_back(cudaStream_t stream, std::int64_t M, const float* dy, float* dx, bool add) const {
    multiply(stream, M, cols, rows, {dy, rows, 1}, {w, cols, 1}, dx, add);
  }
  void weight_back(cudaStream_t stream, std::int64_t M, const float* x, const float* dy,
                   bool add) const {
    multiply(stream, rows, cols, M, {dy, 1, rows}, {x, cols, 1}, gradient, add);
  }
};

struct Norm {
  const float* w;
  float* gradient;
};

struct Layer {
  Linear q, k, v, o, gate, up, down;
  Norm attention, query, key, ff;
  // Of the latest forward pass.
  float *x1, *h1, *raw_q, *raw_k, *value, *turned_q, *turned_k, *p, *a, *x2, *h2, *g, *u, *s;
  float *roots1, *roots_q, *roots_k, *roots2;
};

// The sizes of a blob's parts, in weights: all matrices, then all norms, in its order.
struct Layout {
  explicit Layout(const tt_config& c)
      : wide(std::int64_t{c.Hq} * c.hd), narrow(std::int64_t{c.Hkv} * c.hd) {
    const std::int64_t layer = 2 * wide * c.d + 2 * narrow * c.d + 3 * std::int64_t{c.ff} * c.d;
    matrices = (2 - c.tied) * std::int64_t{c.V} * c.d + c.L * layer;
    norms = c.L * (2 * std::int64_t{c.d} + 2 * c.hd) + c.d;
  }
  std::int64_t wide, narrow, matrices, norms;
};

class Model {
 public:
  // For up to `docs` documents at a time. Without gradients it can only give logits.
  Model(assay_ctx* ctx, const tt_config& c, std::int64_t docs, bool gradients)
      : c_(c), layout_(c), arena_(ctx), stream_(arena_.stream()), docs_(docs), n_(docs * c.T) {
    const std::int64_t all = layout_.matrices + layout_.norms;
    used_ = arena_.take(all);  // rounded matrices, then norms
    gradient_ = gradients ? arena_.zeros(all) : nullptr;
    float *w = used_, *g = gradient_;
    const auto part = [&](std::int64_t n) {
      const Norm here{w, g};
      w += n;
      g += g != nullptr ? n : 0;
      return here;
    };
    const auto matrix = [&](std::int64_t rows, std::int64_t cols) {
      const Norm here = part(rows * cols);
      return Linear{rows, cols, here.w, here.gradient};
    };
    embedding_ = matrix(c.V, c.d);
    head_ = c.tied != 0 ? embedding_ : matrix(c.V, c.d);
    layers_.resize(static_cast<std::size_t>(c.L));
    for (Layer& l : layers_) {
      l.q = matrix(layout_.wide, c.d), l.k = matrix(layout_.narrow, c.d);
      l.v = matrix(layout_.narrow, c.d), l.o = matrix(c.d, layout_.wide);
      l.gate = matrix(c.ff, c.d), l.up = matrix(c.ff, c.d), l.down = matrix(c.d, c.ff);
    }
    for (Layer& l : layers_) {
      l.attention = part(c.d), l.query = part(c.hd), l.key = part(c.hd), l.ff = part(c.d);
    }
    final_ = part(c.d);
    allocate(gradients);
    make_turns();
  }

  void load(const std::uint8_t* blob) {
    unpack<<<threads(layout_.matrices), kThreads, 0, stream_>>>(layout_.matrices, blob, used_);
    // Norms stand at any byte of the blob.
    cudaMemcpyAsync(used_ + layout_.matrices, blob + layout_.matrices / kBlock * kBytes,
                    static_cast<std::size_t>(layout_.norms) * 4, cudaMemcpyDeviceToDevice, stream_);
  }

  // Documents of the host, one after the other.
  void set_documents(const std::vector<std::int32_t>& tokens) {
    docs_ = static_cast<std::int64_t>(tokens.size()) / c_.T;
    n_ = docs_ * c_.T;
    arena_.copy(tokens_, tokens.data(), n_);
  }

  void logits(float* out) {
    embed<<<threads(n_ * c_.d), kThreads, 0, stream_>>>(n_, c_.d, tokens_, embedding_.w,
                                                        layers_.front().x1);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      forward(layers_[l], l + 1 < layers_.size() ? layers_[l + 1].x1 : last_x_);
    }
    normalise(n_, c_.d, last_x_, final_, last_h_, last_roots_);
    head_.forward(stream_, n_, last_h_, out, false);
  }

  // Adds the gradients of the documents' mean losses.
  void learn() {
    logits(logits_);
    loss_back<<<warps(n_), kThreads, 0, stream_>>>(n_, c_.T, c_.V, tokens_, logits_);
    head_.input_back(stream_, n_, logits_, dh_, false);
    head_.weight_back(stream_, n_, last_h_, logits_, true);
    clear(dx_, n_ * c_.d);
    normalise_back(n_, c_.d, last_x_, final_, last_roots_, dh_, dx_);
    for (std::size_t l = layers_.size(); l-- > 0;) backward(layers_[l]);
    embed_back<<<static_cast<unsigned>(c_.V), 128, 0, stream_>>>(n_, c_.d, tokens_, dx_,
                                                                 embedding_.gradient);
  }

  const Layout& layout() const { return layout_; }
  Arena& arena() { return arena_; }
  float* used() { return used_; }
  float* gradient() { return gradient_; }

 private:
  void allocate(bool gradients) {
    const std::int64_t d = c_.d, wide = layout_.wide, narrow = layout_.narrow, ff = c_.ff;
    const std::int64_t pairs = docs_ * c_.Hq * c_.T * c_.T;
    const auto take = [&](std::int64_t each) { return arena_.take(n_ * each); };
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Layer& l = layers_[i];
      if (i > 0 && !gradients) {  // nothing needs to be remembered
        const Layer& first = layers_.front();
        l.x1 = first.x1, l.h1 = first.h1, l.raw_q = first.raw_q, l.raw_k = first.raw_k;
        l.value = first.value, l.turned_q = first.turned_q, l.turned_k = first.turned_k;
        l.p = first.p, l.a = first.a, l.x2 = first.x2, l.h2 = first.h2, l.g = first.g;
        l.u = first.u, l.s = first.s, l.roots1 = first.roots1, l.roots_q = first.roots_q;
        l.roots_k = first.roots_k, l.roots2 = first.roots2;
        continue;
      }
      l.x1 = take(d), l.h1 = take(d), l.raw_q = take(wide), l.raw_k = take(narrow);
      l.value = take(narrow), l.turned_q = take(wide), l.turned_k = take(narrow);
      l.p = arena_.take(pairs), l.a = take(wide), l.x2 = take(d), l.h2 = take(d), l.g = take(ff);
      l.u = take(ff), l.s = take(ff), l.roots1 = take(1), l.roots_q = take(c_.Hq);
      l.roots_k = take(c_.Hkv), l.roots2 = take(1);
    }
    last_x_ = take(d), last_h_ = take(d), last_roots_ = take(1);
    tokens_ = arena_.take<std::int32_t>(n_);
    if (!gradients) return;
    logits_ = take(c_.V), dx_ = take(d), dh_ = take(d), da_ = take(wide), dq_ = take(wide);
    dk_ = take(narrow), dv_ = take(narrow), draw_q_ = take(wide), draw_k_ = take(narrow);
    dscore_ = arena_.take(pairs), ds_ = take(ff), dg_ = take(ff), du_ = take(ff);
  }

  void make_turns() {
    const std::int64_t half = c_.hd / 2;
    std::vector<float2> turns;
    for (std::int64_t t = 0; t < c_.T; ++t) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(t) *
            std::pow(static_cast<double>(c_.theta), -2.0 * static_cast<double>(i) / c_.hd);
        turns.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
      }
    }
    turns_ = arena_.take<float2>(c_.T * half);
    arena_.copy(turns_, turns.data(), c_.T * half);
  }

  Heads heads() const {
    return {docs_, c_.T, c_.Hq, c_.Hkv, c_.hd, 1 / std::sqrt(static_cast<float>(c_.hd))};
  }
  void clear(float* x, std::int64_t n) {
    cudaMemsetAsync(x, 0, static_cast<std::size_t>(n) * sizeof(float), stream_);
  }
  void normalise(std::int64_t rows, std::int64_t n, const float* x, const Norm& w, float* y,
                 float* roots) {
    norm<<<warps(rows), kThreads, 0, stream_>>>(rows, n, c_.eps, x, w.w, y, roots);
  }
  void normalise_back(std::int64_t rows, std::int64_t n, const float* x, const Norm& w,
                      const float* roots, const float* dy, float* dx) {
    norm_back<<<warps(rows), kThreads, 0, stream_>>>(rows, n, x, w.w, roots, dy, dx);
    norm_weight_back<<<blocks_for(n, kWarp), kThreads, 0, stream_>>>(rows, n, x, roots, dy,
                                                                     w.gradient);
  }
  void turn(std::int64_t heads, float direction, float* x) {
    rotate<<<threads(n_ * heads * c_.hd / 2), kThreads, 0, stream_>>>(n_, c_.T, heads, c_.hd,
                                                                      turns_, direction, x);
  }

  void forward(const Layer& l, float* out) {
    normalise(n_, c_.d, l.x1, l.attention, l.h1, l.roots1);
    l.q.forward(stream_, n_, l.h1, l.raw_q, false);
    l.k.forward(stream_, n_, l.h1, l.raw_k, false);
    l.v.forward(stream_, n_, l.h1, l.value, false);
    normalise(n_ * c_.Hq, c_.hd, l.raw_q, l.query, l.turned_q, l.roots_q);
    normalise(n_ * c_.Hkv, c_.hd, l.raw_k, l.key, l.turned_k, l.roots_k);
    turn(c_.Hq, 1, l.turned_q);
    turn(c_.Hkv, 1, l.turned_k);
    attend<<<warps(n_ * c_.Hq), kThreads, 0, stream_>>>(heads(), l.turned_q, l.turned_k, l.value,
                                                        l.p, l.a);
    arena_.copy(l.x2, l.x1, n_ * c_.d);
    l.o.forward(stream_, n_, l.a, l.x2, true);
    normalise(n_, c_.d, l.x2, l.ff, l.h2, l.roots2);
    l.gate.forward(stream_, n_, l.h2, l.g, false);
    l.up.forward(stream_, n_, l.h2, l.u, false);
    gate_up<<<threads(n_ * c_.ff), kThreads, 0, stream_>>>(n_ * c_.ff, l.g, l.u, l.s);
    arena_.copy(out, l.x2, n_ * c_.d);
    l.down.forward(stream_, n_, l.s, out, true);
  }

  // dx_: the gradient of the layer's output, then of its input.
  void backward(const Layer& l) {
    l.down.input_back(stream_, n_, dx_, ds_, false);
    l.down.weight_back(stream_, n_, l.s, dx_, true);
    gate_up_back<<<threads(n_ * c_.ff), kThreads, 0, stream_>>>(n_ * c_.ff, l.g, l.u, ds_, dg_,
                                                                du_);
    l.gate.input_back(stream_, n_, dg_, dh_, false);
    l.up.input_back(stream_, n_, du_, dh_, true);
    l.gate.weight_back(stream_, n_, l.h2, dg_, true);
    l.up.weight_back(stream_, n_, l.h2, du_, true);
    normalise_back(n_, c_.d, l.x2, l.ff, l.roots2, dh_, dx_);

    l.o.input_back(stream_, n_, dx_, da_, false);
    l.o.weight_back(stream_, n_, l.a, dx_, true);
    attend_back_queries<<<warps(n_ * c_.Hq), kThreads, 0, stream_>>>(heads(), l.turned_k, l.value,
                                                                     l.p, da_, dscore_, dq_);
    attend_back_keys<<<warps(n_ * c_.Hkv), kThreads, 0, stream_>>>(heads(), l.turned_q, l.p,
                                                                   dscore_, da_, dk_, dv_);
    turn(c_.Hq, -1, dq_);
    turn(c_.Hkv, -1, dk_);
    clear(draw_q_, n_ * layout_.wide);
    clear(draw_k_, n_ * layout_.narrow);
    normalise_back(n_ * c_.Hq, c_.hd, l.raw_q, l.query, l.roots_q, dq_, draw_q_);
    normalise_back(n_ * c_.Hkv, c_.hd, l.raw_k, l.key, l.roots_k, dk_, draw_k_);
    l.q.input_back(stream_, n_, draw_q_, dh_, false);
    l.k.input_back(stream_, n_, draw_k_, dh_, true);
    l.v.input_back(stream_, n_, dv_, dh_, true);
    l.q.weight_back(stream_, n_, l.h1, draw_q_, true);
    l.k.weight_back(stream_, n_, l.h1, draw_k_, true);
    l.v.weight_back(stream_, n_, l.h1, dv_, true);
    normalise_back(n_, c_.d, l.x1, l.attention, l.roots1, dh_, dx_);
  }

  tt_config c_;
  Layout layout_;
  Arena arena_;
  cudaStream_t stream_;
  std::int64_t docs_, n_;  // of the batch; at first the most
  float *used_, *gradient_;
  Linear embedding_, head_;
  Norm final_;
  std::vector<Layer> layers_;
  float2* turns_;
  std::int32_t* tokens_;
  float *last_x_, *last_h_, *last_roots_, *logits_, *dx_, *dh_, *da_, *dq_, *dk_, *dv_, *draw_q_,
      *draw_k_, *dscore_, *ds_, *dg_, *du_;
};

// The sum of twelve uniforms is close enough to a normal.
float normal(std::uint64_t& state) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    sum += static_cast<double>(state >> 11) * 0x1p-53;
  }
  return static_cast<float>(sum);
}

class Trainer {
 public:
  static constexpr std::int64_t kBatch = 4;
  static constexpr double kPasses = 8;  // over few documents: more learn them by heart

  Trainer(assay_ctx* ctx, const tt_config& c, std::uint64_t seed)
      : c_(c), model_(ctx, c, kBatch, true), layout_(model_.layout()), arena_(model_.arena()) {
    const std::int64_t all = layout_.matrices + layout_.norms;
    value_ = arena_.take(all);
    first_ = arena_.zeros(all);
    second_ = arena_.zeros(all);
    partial_ = arena_.take(kNormBlocks);
    factor_ = arena_.take(1);
    std::vector<float> start(static_cast<std::size_t>(all), 1.0f);
    std::uint64_t state = seed + 0x9e3779b97f4a7c15ull;
    if (state == 0) state = 1;
    const std::int64_t outer = (2 - c.tied) * std::int64_t{c.V} * c.d;  // embedding and head
    for (std::int64_t i = 0; i < layout_.matrices; ++i) {
      start[static_cast<std::size_t>(i)] = (i < outer ? 0.05f : 0.1f) * normal(state);
    }
    arena_.copy(value_, start.data(), all);
  }

  void run(const std::uint16_t* docs, std::int64_t n_docs, const tt_budget& budget) {
    const auto start = std::chrono::steady_clock::now();
    const double per_step = static_cast<double>(kBatch) * c_.T,
                 most = std::min(static_cast<double>(budget.max_tokens),
                                 kPasses * static_cast<double>(n_docs) * c_.T);
    double last = 0, longest = 0;
    for (std::int64_t step = 0; n_docs > 0 && per_step * static_cast<double>(step + 1) <= most;
         ++step) {
      cudaStreamSynchronize(arena_.stream());  // so that the clock tells what the steps take
      const double elapsed =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      longest = std::max(longest, elapsed - last);
      last = elapsed;
      if (elapsed + 2 * longest > 0.95 * budget.seconds) break;
      const double progress =
          std::max(per_step * (static_cast<double>(step) + 0.5) / most, elapsed / (0.95 * budget.seconds));
      learn(docs, n_docs, step, progress < 0.05 ? progress / 0.05 + 0.02 : (1 - progress) / 0.95);
    }
  }

  void write(std::uint8_t* blob) {
    const std::int64_t blocks = layout_.matrices / kBlock;
    pack<<<warps(blocks), kThreads, 0, arena_.stream()>>>(blocks, value_, blob);
    cudaMemcpyAsync(blob + blocks * kBytes, value_ + layout_.matrices,
                    static_cast<std::size_t>(layout_.norms) * 4, cudaMemcpyDeviceToDevice,
                    arena_.stream());
  }

 private:
  void learn(const std::uint16_t* docs, std::int64_t n_docs, std::int64_t step, double rate) {
    const cudaStream_t stream = arena_.stream();
    const std::int64_t blocks = layout_.matrices / kBlock, all = layout_.matrices + layout_.norms;
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const std::uint16_t* doc = docs + (step * kBatch + i) % n_docs * c_.T;
      tokens.insert(tokens.end(), doc, doc + c_.T);
    }
    round_weights<<<warps(blocks), kThreads, 0, stream>>>(blocks, value_, model_.used());
    arena_.copy(model_.used() + layout_.matrices, value_ + layout_.matrices, layout_.norms);
    model_.set_documents(tokens);
    model_.learn();
    partial_squares<<<kNormBlocks, kThreads, 0, stream>>>(all, model_.gradient(), partial_);
    gradient_factor<<<1, kThreads, 0, stream>>>(static_cast<float>(kBatch), partial_, factor_);
    const double n = static_cast<double>(step + 1);
    const Schedule s{static_cast<float>(rate), static_cast<float>(1 - std::pow(0.9, n)),
                     static_cast<float>(1 - std::pow(0.98, n))};
    adam<<<threads(all), kThreads, 0, stream>>>(all, layout_.matrices, s, factor_, value_,
                                                model_.gradient(), first_, second_);
  }

  tt_config c_;
  Model model_;
  const Layout& layout_;
  Arena& arena_;
  float *value_, *first_, *second_, *partial_, *factor_;
};

bool valid(const tt_config* c) {
  if (c == nullptr || c->V <= 0 || c->V > 65536 || c->d <= 0 || c->L <= 0 || c->Hq <= 0 ||
      c->Hkv <= 0)
    return false;
  if (c->hd <= 0 || c->hd % 2 != 0 || c->ff <= 0 || c->T < 2 || c->Hq % c->Hkv != 0) return false;
  return c->d % 128 == 0 && std::int64_t{c->Hq} * c->hd % 128 == 0 && c->ff % 128 == 0 &&
         (c->tied == 0 || c->tied == 1);
}

bool valid_matrix(std::int64_t rows, std::int64_t cols, const void* a, const void* b) {
  return rows >= 0 && cols >= 0 && cols % kBlock == 0 &&
         (rows * cols == 0 || (a != nullptr && b != nullptr));
}

cudaStream_t stream_of(const assay_ctx* ctx) { return static_cast<cudaStream_t>(ctx->stream); }

}  // namespace

extern "C" std::size_t tt_blob_bytes(const tt_config* c) {
  if (!valid(c)) return 0;
  const Layout layout(*c);
  return static_cast<std::size_t>(layout.matrices / kBlock * kBytes + layout.norms * 4);
}

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const std::uint16_t* docs,
                        std::int64_t n_docs, const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || (n_docs > 0 && docs == nullptr) || budget == nullptr ||
      blob == nullptr)
    return ASSAY_EINVAL;
  try {
    Trainer trainer(ctx, *c, budget->seed);
    trainer.run(docs, n_docs, *budget);
    trainer.write(static_cast<std::uint8_t*>(blob));
    return launch_status();
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

extern "C" int tt_quantize(assay_ctx* ctx, std::int64_t rows, std::int64_t cols, const float* w,
                           std::uint8_t* blocks) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  const std::int64_t n = rows * cols / kBlock;
  if (n == 0) return ASSAY_OK;
  pack<<<warps(n), kThreads, 0, stream_of(ctx)>>>(n, w, blocks);
  return launch_status();
}

extern "C" int tt_dequantize(assay_ctx* ctx, std::int64_t rows, std::int64_t cols,
                             const std::uint8_t* blocks, float* w) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  const std::int64_t n = rows * cols;
  if (n == 0) return ASSAY_OK;
  unpack<<<threads(n), kThreads, 0, stream_of(ctx)>>>(n, blocks, w);
  return launch_status();
}

extern "C" int tt_linear(assay_ctx* ctx, std::int64_t M, std::int64_t rows, std::int64_t cols,
                         const float* x, const std::uint8_t* blocks, const float* dy, float* y,
                         float* dx, float* dw_latent) {
  if (M < 0 || !valid_matrix(rows, cols, blocks, dw_latent)) return ASSAY_EINVAL;
  if (M * cols > 0 && (x == nullptr || dx == nullptr)) return ASSAY_EINVAL;
  if (M * rows > 0 && (dy == nullptr || y == nullptr)) return ASSAY_EINVAL;
  try {
    Arena arena(ctx);
    float* w = arena.take(std::max<std::int64_t>(rows * cols, 1));
    if (const int status = tt_dequantize(ctx, rows, cols, blocks, w); status != ASSAY_OK)
      return status;
    const Linear linear{rows, cols, w, dw_latent};
    linear.forward(arena.stream(), M, x, y, false);
    linear.input_back(arena.stream(), M, dy, dx, false);
    linear.weight_back(arena.stream(), M, x, dy, false);
    return launch_status();
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob,
                         const std::uint16_t* docs, std::int64_t n_docs, float* logits) {
  if (!valid(c) || n_docs < 0 || blob == nullptr ||
      (n_docs > 0 && (docs == nullptr || logits == nullptr)))
    return ASSAY_EINVAL;
  if (n_docs == 0) return ASSAY_OK;
  try {
    const std::int64_t batch = std::min<std::int64_t>(n_docs, 4);
    Model model(ctx, *c, batch, false);
    model.load(static_cast<const std::uint8_t*>(blob));
    for (std::int64_t i = 0; i < n_docs; i += batch) {
      const std::int64_t n = std::min(batch, n_docs - i);
      model.set_documents({docs + i * c->T, docs + (i + n) * c->T});
      model.logits(logits + i * c->T * c->V);
    }
    return launch_status();
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}
