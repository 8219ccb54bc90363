// Sample entrant of assay, not a model's answer: what a good textbook would print, in CUDA. A block
// has 64 queries of a head and passes over the keys in tiles of 64, held in shared memory, with an
// online softmax. 8 x 8 threads: a thread has eight queries, and every 8th key of a tile or groups of
// neighbouring elements of a value; for D = 128, whose sums would not fit into registers, 16 x 16
// threads with four queries each. Shared memory is read four elements at a time. fp32 arithmetic
// throughout; fp32, bf16 and f16 data; D = Dv in 32, 64, 128; no window, no extras.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "abi.h"

namespace {

constexpr int kTile = 64;
template <int D>
constexpr int kSide = D > 64 ? 16 : 8;
template <int D>
constexpr int kThreads = kSide<D>* kSide<D>;
template <int D>
constexpr int kRows = kTile / kSide<D>;

__device__ float to_float(float x) { return x; }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ float to_float(__half x) { return __half2float(x); }
__device__ void put(float& out, float x) { out = x; }
__device__ void put(__nv_bfloat16& out, float x) { out = __float2bfloat16(x); }
__device__ void put(__half& out, float x) { out = __float2half(x); }

// Rows are padded by four elements, so that a column of float4 lies in different banks.
constexpr int kPad = 4;
template <int D>
struct alignas(16) Shared {
  float q[kTile][D + kPad];
  float kv[kTile][D + kPad];     // keys, then values of the same tile
  float p[kTile][kTile + kPad];  // weights relative to the running maximum
};

// Neighbouring elements, which one instruction loads.
template <int N>
struct alignas(N * sizeof(float)) Pack {
  float at[N];
};
template <int N>
__device__ Pack<N> pack(const float* from) {
  return *reinterpret_cast<const Pack<N>*>(from);
}

// A thread's elements of a row of values: D / kSide<D> of them, as many neighbours as a Pack holds.
template <int D>
constexpr int kNeighbours = D / kSide<D> < 4 ? D / kSide<D> : 4;
template <int D>
__device__ int element(int tx, int c) {
  constexpr int N = kNeighbours<D>;
  return N * (tx + kSide<D> * (c / N)) + c % N;
}

// Row r of the tile is row first + r of the array; zeros from `rows` on.
template <int D, class T>
__device__ void load_tile(float (*tile)[D + kPad], const T* data, std::int64_t step,
                          std::int64_t first, std::int64_t rows) {
  for (int at = threadIdx.x; at < kTile * D; at += kThreads<D>) {
    const int r = at / D, d = at % D;
    tile[r][d] = first + r < rows ? to_float(data[(first + r) * step + d]) : 0.0f;
  }
}

template <int D, class T>
__device__ void store_tile(const float (*tile)[D + kPad], T* data, std::int64_t step,
                           std::int64_t first, std::int64_t rows) {
  for (int at = threadIdx.x; at < kTile * D; at += kThreads<D>) {
    const int r = at / D, d = at % D;
    if (first + r < rows) put(data[(first + r) * step + d], tile[r][d]);
  }
}

// Over the kSide threads that share the same queries: neighbours in a warp.
template <int D>
__device__ float row_max(float x) {
  for (int offset = kSide<D> / 2; offset > 0; offset /= 2) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
  }
  return x;
}
template <int D>
__device__ float row_sum(float x) {
  for (int offset = kSide<D> / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

// output += p v. A row takes its first `visible` keys only: a value that it does not see may be
// NaN.
template <int D, bool kAllVisible>
__device__ void add_values(const Shared<D>& s, int ty, int tx, const int (&visible)[kRows<D>],
                           float (&output)[kRows<D>][D / kSide<D>]) {
  constexpr int N = kNeighbours<D>;
  for (int j = 0; j < kTile; j += 4) {
    Pack<4> p[kRows<D>];
    for (int r = 0; r < kRows<D>; ++r) p[r] = pack<4>(&s.p[ty * kRows<D> + r][j]);
#pragma unroll
    for (int key = 0; key < 4; ++key) {
      for (int c = 0; c < D / kSide<D>; c += N) {
        const Pack<N> v = pack<N>(&s.kv[j + key][element<D>(tx, c)]);
        for (int r = 0; r < kRows<D>; ++r) {
          if (!kAllVisible && j + key >= visible[r]) continue;
          for (int n = 0; n < N; ++n) output[r][c + n] += p[r].at[key] * v.at[n];
        }
      }
    }
  }
}

template <int D, class T>
__global__ void __launch_bounds__(kThreads<D>)
    attend(fa_params p, const T* q, const T* k, const T* v, T* o, float* lse) {
  extern __shared__ float memory[];
  auto& s = *reinterpret_cast<Shared<D>*>(memory);
  const std::int64_t b = blockIdx.x / p.Hq, h = blockIdx.x % p.Hq, kv = h / (p.Hq / p.Hkv);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * kTile;  // query of the block
  const int tx = threadIdx.x % kSide<D>, ty = threadIdx.x / kSide<D>;
  k += b * p.sk.b + kv * p.sk.h;
  v += b * p.sv.b + kv * p.sv.h;
  load_tile<D>(s.q, q + b * p.sq.b + h * p.sq.h, p.sq.n, first, p.Nq);

  std::int64_t end[kRows<D>];  // a query sees the keys below
  float running_max[kRows<D>], running_sum[kRows<D>], output[kRows<D>][D / kSide<D>];
  for (int r = 0; r < kRows<D>; ++r) {
    const std::int64_t i = first + ty * kRows<D> + r;
    end[r] = i >= p.Nq ? 0 : p.causal != 0 ? min(p.Nk, i + p.Nk - p.Nq + 1) : p.Nk;
    running_max[r] = -INFINITY;
    running_sum[r] = 0;
    for (float& x : output[r]) x = 0;
  }
  const std::int64_t last = min(first + kTile, p.Nq) - 1;
  const std::int64_t block_end = p.causal != 0 ? min(p.Nk, last + p.Nk - p.Nq + 1) : p.Nk;
  const std::int64_t all_see = p.causal != 0 ? first + p.Nk - p.Nq + 1 : p.Nk;

  for (std::int64_t j = 0; j < block_end; j += kTile) {
    __syncthreads();  // the values before have been used
    load_tile<D>(s.kv, k, p.sk.n, j, p.Nk);
    __syncthreads();
    float score[kRows<D>][kRows<D>] = {};  // of the keys j + tx + kSide c
#pragma unroll 2
    for (int d = 0; d < D; d += 4) {
      Pack<4> key[kRows<D>];
      for (int c = 0; c < kRows<D>; ++c) key[c] = pack<4>(&s.kv[tx + kSide<D> * c][d]);
      for (int r = 0; r < kRows<D>; ++r) {
        const Pack<4> query = pack<4>(&s.q[ty * kRows<D> + r][d]);
        for (int c = 0; c < kRows<D>; ++c) {
          for (int n = 0; n < 4; ++n) score[r][c] += query.at[n] * key[c].at[n];
        }
      }
    }
    int visible[kRows<D>];
    for (int r = 0; r < kRows<D>; ++r) {
      visible[r] = static_cast<int>(max(std::int64_t{0}, min(end[r] - j, std::int64_t{kTile})));
      float largest = running_max[r];
      for (int c = 0; c < kRows<D>; ++c) {
        // Selected, not added: what is masked may be NaN.
        score[r][c] = tx + kSide<D> * c < visible[r] ? score[r][c] * p.scale : -INFINITY;
        largest = fmaxf(largest, score[r][c]);
      }
      largest = row_max<D>(largest);
      const float base = largest == -INFINITY ? 0.0f : largest;  // no score above -inf yet
      const float keep = expf(running_max[r] - base);
      float added = 0;
      for (int c = 0; c < kRows<D>; ++c) {
        const float weight = expf(score[r][c] - base);
        s.p[ty * kRows<D> + r][tx + kSide<D> * c] = weight;
        added += weight;
      }
      running_max[r] = largest;
      running_sum[r] = running_sum[r] * keep + row_sum<D>(added);
      for (float& x : output[r]) x *= keep;
    }
    __syncthreads();
    load_tile<D>(s.kv, v, p.sv.n, j, p.Nk);
    __syncthreads();
    if (j + kTile <= all_see) {
      add_values<D, true>(s, ty, tx, visible, output);
    } else {
      add_values<D, false>(s, ty, tx, visible, output);
    }
  }

  // By way of shared memory, so that neighbouring threads write neighbouring elements. The queries
  // have been used.
  __syncthreads();
  for (int r = 0; r < kRows<D>; ++r) {
    const std::int64_t i = first + ty * kRows<D> + r;
    for (int c = 0; c < D / kSide<D>; ++c) {
      s.q[ty * kRows<D> + r][element<D>(tx, c)] = end[r] > 0 ? output[r][c] / running_sum[r] : 0.0f;
    }
    if (tx == 0 && lse != nullptr && i < p.Nq) {
      lse[(b * p.Hq + h) * p.Nq + i] =
          end[r] > 0 ? running_max[r] + logf(running_sum[r]) : -INFINITY;
    }
  }
  __syncthreads();
  store_tile<D>(s.q, o + b * p.so.b + h * p.so.h, p.so.n, first, p.Nq);
}

template <int D, class T>
int launch(assay_ctx* ctx, const fa_params& p, const void* q, const void* k, const void* v, void* o,
           float* lse) {
  const auto kernel = attend<D, T>;
  constexpr int kBytes = sizeof(Shared<D>);  // above 48 KiB a kernel must ask for it
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes) !=
      cudaSuccess) {
    return ASSAY_EINTERNAL;
  }
  const dim3 grid(static_cast<unsigned>(p.B * p.Hq),
                  static_cast<unsigned>((p.Nq + kTile - 1) / kTile));
  kernel<<<grid, kThreads<D>, kBytes, static_cast<cudaStream_t>(ctx->stream)>>>(
      p, static_cast<const T*>(q), static_cast<const T*>(k), static_cast<const T*>(v),
      static_cast<T*>(o), lse);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}

template <class T>
int forward(assay_ctx* ctx, const fa_params& p, const void* q, const void* k, const void* v,
            void* o, float* lse) {
  switch (p.D) {
    case 32: return launch<32, T>(ctx, p, q, k, v, o, lse);
    case 64: return launch<64, T>(ctx, p, q, k, v, o, lse);
    case 128: return launch<128, T>(ctx, p, q, k, v, o, lse);
    default: return ASSAY_ENOTSUP;
  }
}

bool valid(const fa_params* p, const void* q, const void* k, const void* v, const void* o) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0)
    return false;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const std::int64_t queries = p->B * p->Hq * p->Nq, keys = p->B * p->Hkv * p->Nk;
  return (q != nullptr || queries * p->D == 0) && (k != nullptr || keys * p->D == 0) &&
         (v != nullptr || keys * p->Dv == 0) && (o != nullptr || queries * p->Dv == 0);
}

}  // namespace

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  if (p->D != p->Dv || p->window > 0) return ASSAY_ENOTSUP;
  if (p->B * p->Hq * p->Nq == 0) return ASSAY_OK;
  switch (p->dtype) {
    case ASSAY_F32: return forward<float>(ctx, *p, q, k, v, o, lse);
    case ASSAY_BF16: return forward<__nv_bfloat16>(ctx, *p, q, k, v, o, lse);
    case ASSAY_F16: return forward<__half>(ctx, *p, q, k, v, o, lse);
    default: return ASSAY_ENOTSUP;
  }
}
