// Sample entrant of assay, not a model's answer: what a good textbook would print, in CUDA. delta =
// dout . o once per row; then one kernel whose blocks have a tile of keys each and pass over the
// queries of all heads that read them, for dk and dv, and one whose blocks have a tile of queries
// and pass over the keys, for dq. Both recompute the weights from lse, and neither needs atomics.
// fp32 arithmetic throughout; fp32, bf16 and f16 data; D = Dv in 32, 64, 128; no window, no extras.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kWarp = 32, kSide = 16, kThreads = kSide * kSide;

__device__ float to_float(float x) { return x; }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ float to_float(__half x) { return __half2float(x); }
__device__ void put(float& out, float x) { out = x; }
__device__ void put(__nv_bfloat16& out, float x) { out = __float2bfloat16(x); }
__device__ void put(__half& out, float x) { out = __float2half(x); }

// Queries, and keys, of a tile: as many as shared memory has room for.
template <int D>
constexpr int kTile = D <= 64 ? 64 : 32;

// Rows are padded by one element, so that a column lies in different banks.
template <int D>
struct Shared {
  float q[kTile<D>][D + 1], dout[kTile<D>][D + 1];
  float k[kTile<D>][D + 1], v[kTile<D>][D + 1];
  float p[kTile<D>][kTile<D> + 1], ds[kTile<D>][kTile<D> + 1];  // [query][key]
  float lse[kTile<D>], delta[kTile<D>];
};

template <class T>
struct Arrays {
  const T *dout, *q, *k, *v;
  const float *lse, *delta;  // [B, Hq, Nq]
  T *dq, *dk, *dv;
};

// delta [B, Hq, Nq] = dout . o: a warp for each row.
template <class T>
__global__ void row_products(fa_params p, const T* dout, const T* o, float* delta) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (row >= p.B * p.Hq * p.Nq) return;
  const std::int64_t at =
      row / p.Nq / p.Hq * p.so.b + row / p.Nq % p.Hq * p.so.h + row % p.Nq * p.so.n;
  float sum = 0;
  for (std::int64_t d = threadIdx.x % kWarp; d < p.Dv; d += kWarp) {
    sum += to_float(dout[at + d]) * to_float(o[at + d]);
  }
  for (int offset = kWarp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x % kWarp == 0) delta[row] = sum;
}

// Row r of the tile is row first + r of the array; zeros from `rows` on.
template <int D, class T>
__device__ void load_tile(float (*tile)[D + 1], const T* data, std::int64_t step,
                          std::int64_t first, std::int64_t rows) {
  for (int at = threadIdx.x; at < kTile<D> * D; at += kThreads) {
    const int r = at / D, d = at % D;
    tile[r][d] = first + r < rows ? to_float(data[(first + r) * step + d]) : 0.0f;
  }
}

template <int D, class T>
__device__ void load_queries(Shared<D>& s, const fa_params& p, const Arrays<T>& a, std::int64_t b,
                             std::int64_t h, std::int64_t first) {
  load_tile<D>(s.q, a.q + b * p.sq.b + h * p.sq.h, p.sq.n, first, p.Nq);
  load_tile<D>(s.dout, a.dout + b * p.so.b + h * p.so.h, p.so.n, first, p.Nq);
  for (int r = threadIdx.x; r < kTile<D>; r += kThreads) {
    const std::int64_t row = (b * p.Hq + h) * p.Nq + first + r;
    s.lse[r] = first + r < p.Nq ? a.lse[row] : 0.0f;
    s.delta[r] = first + r < p.Nq ? a.delta[row] : 0.0f;
  }
}

template <int D, class T>
__device__ void load_keys(Shared<D>& s, const fa_params& p, const Arrays<T>& a, std::int64_t b,
                          std::int64_t kv, std::int64_t first) {
  load_tile<D>(s.k, a.k + b * p.sk.b + kv * p.sk.h, p.sk.n, first, p.Nk);
  load_tile<D>(s.v, a.v + b * p.sv.b + kv * p.sv.h, p.sv.n, first, p.Nk);
}

__device__ bool sees(const fa_params& p, std::int64_t i, std::int64_t j) {
  return i < p.Nq && j < p.Nk && (p.causal == 0 || j <= i + p.Nk - p.Nq);
}

// Whether each query of a tile sees each key of the other.
template <int D>
__device__ bool all_see(const fa_params& p, std::int64_t i, std::int64_t j) {
  return i + kTile<D> <= p.Nq && sees(p, i, j + kTile<D> - 1);
}

// The weights and their gradients, scaled, of the tile's pairs: s.p and s.ds. i and j are the first
// query and key. 0 where a query does not see a key, whatever they hold.
template <int D>
__device__ void make_weights(Shared<D>& s, const fa_params& p, std::int64_t i, std::int64_t j) {
  constexpr int kEach = kTile<D> / kSide;
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  float score[kEach][kEach] = {}, dp[kEach][kEach] = {};  // of keys tx + 16 c
#pragma unroll 4
  for (int d = 0; d < D; ++d) {
    float key[kEach], value[kEach];
    for (int c = 0; c < kEach; ++c) {
      key[c] = s.k[tx + kSide * c][d];
      value[c] = s.v[tx + kSide * c][d];
    }
    for (int r = 0; r < kEach; ++r) {
      const float query = s.q[ty * kEach + r][d], dout = s.dout[ty * kEach + r][d];
      for (int c = 0; c < kEach; ++c) {
        score[r][c] += query * key[c];
        dp[r][c] += dout * value[c];
      }
    }
  }
  for (int r = 0; r < kEach; ++r) {
    const int row = ty * kEach + r;
    for (int c = 0; c < kEach; ++c) {
      const int column = tx + kSide * c;
      const bool visible = sees(p, i + row, j + column);
      const float weight = expf(score[r][c] * p.scale - s.lse[row]);
      s.p[row][column] = visible ? weight : 0.0f;
      s.ds[row][column] = visible ? weight * (dp[r][c] - s.delta[row]) * p.scale : 0.0f;
    }
  }
}

// The gradients of a tile of keys.
template <int D, class T>
__global__ void __launch_bounds__(kThreads) key_gradients(fa_params p, Arrays<T> a) {
  constexpr int kEach = kTile<D> / kSide;
  extern __shared__ float memory[];
  auto& s = *reinterpret_cast<Shared<D>*>(memory);
  const std::int64_t b = blockIdx.x / p.Hkv, kv = blockIdx.x % p.Hkv, group = p.Hq / p.Hkv;
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.y) * kTile<D>;
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  float dk[kEach][D / kSide] = {}, dv[kEach][D / kSide] = {};  // of keys ty kEach + r
  load_keys(s, p, a, b, kv, j);
  // Queries before the one that sees the tile's first key see none of it.
  const std::int64_t first_seeing = p.causal != 0 ? max(std::int64_t{0}, j - (p.Nk - p.Nq)) : 0;
  for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
    for (std::int64_t i = first_seeing / kTile<D> * kTile<D>; i < p.Nq; i += kTile<D>) {
      __syncthreads();  // the queries before have been used
      load_queries(s, p, a, b, h, i);
      __syncthreads();
      make_weights<D>(s, p, i, j);
      __syncthreads();
      const bool all = all_see<D>(p, i, j);
#pragma unroll 2
      for (int row = 0; row < kTile<D>; ++row) {
        for (int r = 0; r < kEach; ++r) {
          // A query that does not see the key may be NaN.
          const int column = ty * kEach + r;
          if (!all && !sees(p, i + row, j + column)) continue;
          const float weight = s.p[row][column], ds = s.ds[row][column];
          for (int c = 0; c < D / kSide; ++c) {
            dv[r][c] += weight * s.dout[row][tx + kSide * c];
            dk[r][c] += ds * s.q[row][tx + kSide * c];
          }
        }
      }
    }
  }
  for (int r = 0; r < kEach; ++r) {
    const std::int64_t key = j + ty * kEach + r;
    if (key >= p.Nk) break;
    for (int c = 0; c < D / kSide; ++c) {
      const int d = tx + kSide * c;
      put(a.dk[b * p.sk.b + kv * p.sk.h + key * p.sk.n + d], dk[r][c]);
      put(a.dv[b * p.sv.b + kv * p.sv.h + key * p.sv.n + d], dv[r][c]);
    }
  }
}

// The gradients of a tile of queries.
template <int D, class T>
__global__ void __launch_bounds__(kThreads) query_gradients(fa_params p, Arrays<T> a) {
  constexpr int kEach = kTile<D> / kSide;
  extern __shared__ float memory[];
  auto& s = *reinterpret_cast<Shared<D>*>(memory);
  const std::int64_t b = blockIdx.x / p.Hq, h = blockIdx.x % p.Hq, kv = h / (p.Hq / p.Hkv);
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.y) * kTile<D>;
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  float dq[kEach][D / kSide] = {};
  load_queries(s, p, a, b, h, i);
  const std::int64_t last = min(i + kTile<D>, p.Nq) - 1;
  const std::int64_t end = p.causal != 0 ? min(p.Nk, last + p.Nk - p.Nq + 1) : p.Nk;
  for (std::int64_t j = 0; j < end; j += kTile<D>) {
    __syncthreads();  // the keys before have been used
    load_keys(s, p, a, b, kv, j);
    __syncthreads();
    make_weights<D>(s, p, i, j);
    __syncthreads();
    const bool all = all_see<D>(p, i, j);
#pragma unroll 2
    for (int column = 0; column < kTile<D>; ++column) {
      for (int r = 0; r < kEach; ++r) {
        // A key that the query does not see may be NaN.
        if (!all && !sees(p, i + ty * kEach + r, j + column)) continue;
        const float ds = s.ds[ty * kEach + r][column];
        for (int c = 0; c < D / kSide; ++c) dq[r][c] += ds * s.k[column][tx + kSide * c];
      }
    }
  }
  for (int r = 0; r < kEach; ++r) {
    const std::int64_t query = i + ty * kEach + r;
    if (query >= p.Nq) break;
    for (int c = 0; c < D / kSide; ++c) {
      put(a.dq[b * p.sq.b + h * p.sq.h + query * p.sq.n + tx + kSide * c], dq[r][c]);
    }
  }
}

unsigned blocks(std::int64_t n, std::int64_t each) {
  return static_cast<unsigned>((n + each - 1) / each);
}

template <int D, class T>
int launch(assay_ctx* ctx, const fa_params& p, const Arrays<T>& a) {
  const auto stream = static_cast<cudaStream_t>(ctx->stream);
  constexpr int kBytes = sizeof(Shared<D>);  // above 48 KiB a kernel must ask for it
  for (const auto kernel : {key_gradients<D, T>, query_gradients<D, T>}) {
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes) !=
        cudaSuccess) {
      return ASSAY_EINTERNAL;
    }
  }
  if (p.B * p.Hkv * p.Nk > 0) {
    const dim3 grid(static_cast<unsigned>(p.B * p.Hkv), blocks(p.Nk, kTile<D>));
    key_gradients<D, T><<<grid, kThreads, kBytes, stream>>>(p, a);
  }
  if (p.B * p.Hq * p.Nq > 0) {
    const dim3 grid(static_cast<unsigned>(p.B * p.Hq), blocks(p.Nq, kTile<D>));
    query_gradients<D, T><<<grid, kThreads, kBytes, stream>>>(p, a);
  }
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}

template <class T>
int backward(assay_ctx* ctx, const fa_params& p, const void* dout, const void* q, const void* k,
             const void* v, const void* o, const float* lse, void* dq, void* dk, void* dv) {
  if (p.D != 32 && p.D != 64 && p.D != 128) return ASSAY_ENOTSUP;
  const std::int64_t rows = p.B * p.Hq * p.Nq;
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(rows, 1)) * sizeof(float);
  auto* delta = static_cast<float*>(ctx->alloc(ctx, bytes, 256, 1));
  if (delta == nullptr) return ASSAY_ENOMEM;
  const auto in = [](const void* x) { return static_cast<const T*>(x); };
  const auto out = [](void* x) { return static_cast<T*>(x); };
  if (rows > 0) {
    row_products<T>
        <<<blocks(rows, kThreads / kWarp), kThreads, 0, static_cast<cudaStream_t>(ctx->stream)>>>(
            p, in(dout), in(o), delta);
  }
  const Arrays<T> a{in(dout), in(q), in(k), in(v), lse, delta, out(dq), out(dk), out(dv)};
  const int status = p.D == 32   ? launch<32, T>(ctx, p, a)
                     : p.D == 64 ? launch<64, T>(ctx, p, a)
                                 : launch<128, T>(ctx, p, a);
  ctx->free(ctx, delta);
  return status;
}

}  // namespace

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0)
    return ASSAY_EINVAL;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return ASSAY_EINVAL;
  const std::int64_t queries = p->B * p->Hq * p->Nq, keys = p->B * p->Hkv * p->Nk;
  const auto missing = [](std::int64_t n, const void* x, const void* y) {
    return n > 0 && (x == nullptr || y == nullptr);
  };
  if (missing(queries * p->D, q, dq) || missing(keys * p->D, k, dk) ||
      missing(keys * p->Dv, v, dv) || missing(queries * p->Dv, dout, o) ||
      missing(queries, lse, lse)) {
    return ASSAY_EINVAL;
  }
  if (p->D != p->Dv || p->window > 0) return ASSAY_ENOTSUP;
  switch (p->dtype) {
    case ASSAY_F32: return backward<float>(ctx, *p, dout, q, k, v, o, lse, dq, dk, dv);
    case ASSAY_BF16: return backward<__nv_bfloat16>(ctx, *p, dout, q, k, v, o, lse, dq, dk, dv);
    case ASSAY_F16: return backward<__half>(ctx, *p, dout, q, k, v, o, lse, dq, dk, dv);
    default: return ASSAY_ENOTSUP;
  }
}
