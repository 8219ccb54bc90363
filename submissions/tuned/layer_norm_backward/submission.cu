// Sample entrant of assay, not a model's answer. x and dy are read once. A block of eight warps
// walks over rows with a stride; a row belongs to 1, 2, 4 or 8 of the warps and stays in their
// registers, up to 16 columns a thread. A thread has the same columns in every row, so gamma and
// the sums of dgamma and dbeta stay in registers too. At the end a block leaves one row of sums,
// and a second launch adds those up in a fixed order. Rows beyond 4096 columns are read again.
// Supports NULL outputs, bf16, the fused residual, RMSNorm and x near 1e19.
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kWarp = 32, kWarps = 8, kThreads = kWarp * kWarps;
constexpr int kMostColumns = 16;  // of a thread
constexpr std::int64_t kResident = std::int64_t{kMostColumns} * kThreads;

enum class Norm { layer, rms };

struct RowStatistics {
  float mean, rstd;
};

struct Problem {
  std::int64_t rows, D;
  float eps;
  const void *dy, *x;
  const float* gamma;
  const RowStatistics* statistics;  // null for RMSNorm of resident rows
  const void* dres;                 // or null
  void* dx;                         // or null
  float* partial;                   // [blocks, 2, D]: sums of dgamma, of dbeta; or null
  int warps_of_row;
};

__device__ float widen(float x) { return x; }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void narrow(float x, float* to) { *to = x; }
__device__ void narrow(float x, __nv_bfloat16* to) { *to = __float2bfloat16(x); }

template <class T, int kVector>
struct alignas(kVector * sizeof(T)) Vector {
  T values[kVector];
};

template <int kVector, class T>
__device__ void load(const T* p, float* out) {
  const auto v = *reinterpret_cast<const Vector<T, kVector>*>(p);
#pragma unroll
  for (int i = 0; i < kVector; ++i) out[i] = widen(v.values[i]);
}

template <int kVector, class T>
__device__ void store(T* p, const float* in) {
  Vector<T, kVector> v;
#pragma unroll
  for (int i = 0; i < kVector; ++i) narrow(in[i], &v.values[i]);
  *reinterpret_cast<Vector<T, kVector>*>(p) = v;
}

__device__ float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }

__device__ float2 warp_sum(float2 v) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    v = v + float2{__shfl_xor_sync(~0u, v.x, offset), __shfl_xor_sync(~0u, v.y, offset)};
  }
  return v;
}

// The sum over `warps` neighbouring warps, in each of their threads. With more than one, all of the
// block calls it; the next call takes another buffer.
__device__ float2 team_sum(float2 v, int warps, float2* buffer) {
  v = warp_sum(v);
  if (warps == 1) return v;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  if (threadIdx.x % kWarp == 0) buffer[warp] = v;
  __syncthreads();
  const float2* first = buffer + warp / warps * warps;
  v = first[0];
  for (int w = 1; w < warps; ++w) v = v + first[w];
  return v;
}

// What a row needs beside its elements: xhat = (x - mean) rstd, dx = rstd (g - mean_g - xhat
// mean_gx).
struct RowTerms {
  float mean, rstd, mean_g, mean_gx;
};

// The two terms that a row is summed over.
template <Norm norm>
__device__ float2 terms_of(float x, float g, float mean, float rstd, float root) {
  if constexpr (norm == Norm::rms) return {x * root * (x * root), g * x};
  return {g, g * ((x - mean) * rstd)};
}

template <Norm norm>
__device__ RowTerms finish_terms(float2 sums, float mean, float rstd, float eps, float D) {
  if constexpr (norm == Norm::rms) {
    const float q = 1 / sqrtf(sums.x + eps);
    return {0, q, 0, q * sums.y / D};
  }
  return {mean, rstd, sums.x / D, sums.y / D};
}

template <class T, Norm norm, int kVector, int kColumns>
__global__ void __launch_bounds__(kThreads, 2) resident_rows(Problem p) {
  constexpr int kAccesses = kColumns / kVector;
  __shared__ float2 buffers[2][kWarps];
  __shared__ float sums[kColumns * kThreads];
  const int D = static_cast<int>(p.D), team = p.warps_of_row * kWarp, teams = kThreads / team;
  const int mine = static_cast<int>(threadIdx.x) / team;
  const int first = static_cast<int>(threadIdx.x) % team * kVector;
  const auto column = [&](int access) { return first + access * team * kVector; };

  float gamma[kColumns] = {}, sum_gamma[kColumns] = {}, sum_beta[kColumns] = {};
#pragma unroll
  for (int a = 0; a < kAccesses; ++a) {
    if (column(a) < D) load<kVector>(p.gamma + column(a), gamma + a * kVector);
  }
  const float n = static_cast<float>(D), root = 1 / sqrtf(n);
  int turn = 0;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * teams;
  for (std::int64_t top = static_cast<std::int64_t>(blockIdx.x) * teams; top < p.rows;
       top += step, turn ^= 1) {
    const std::int64_t row = top + mine;
    const bool exists = row < p.rows;
    float x[kColumns] = {}, g[kColumns] = {};
    float mean = 0, rstd = 0;
    if (exists) {
      const T* row_x = static_cast<const T*>(p.x) + row * D;
      const T* row_dy = static_cast<const T*>(p.dy) + row * D;
#pragma unroll
      for (int a = 0; a < kAccesses; ++a) {
        if (column(a) >= D) continue;
        load<kVector>(row_x + column(a), x + a * kVector);
        load<kVector>(row_dy + column(a), g + a * kVector);
      }
      if constexpr (norm == Norm::layer) {
        mean = p.statistics[row].mean;
        rstd = p.statistics[row].rstd;
      }
    }
    float2 sum{};
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      sum = sum + terms_of<norm>(x[c], g[c] * gamma[c], mean, rstd, root);
    }
    const RowTerms t =
        finish_terms<norm>(team_sum(sum, p.warps_of_row, buffers[turn]), mean, rstd, p.eps, n);
    if (!exists) continue;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const float xhat = (x[c] - t.mean) * t.rstd;
      sum_gamma[c] += g[c] * xhat;
      sum_beta[c] += g[c];
      x[c] = t.rstd * (g[c] * gamma[c] - t.mean_g - xhat * t.mean_gx);
    }
    if (p.dx == nullptr) continue;
    T* row_dx = static_cast<T*>(p.dx) + row * D;
#pragma unroll
    for (int a = 0; a < kAccesses; ++a) {
      if (column(a) >= D) continue;
      float* result = x + a * kVector;
      if (p.dres != nullptr) {
        float bypass[kVector];
        load<kVector>(static_cast<const T*>(p.dres) + row * D + column(a), bypass);
#pragma unroll
        for (int i = 0; i < kVector; ++i) result[i] += bypass[i];
      }
      store<kVector>(row_dx + column(a), result);
    }
  }
  if (p.partial == nullptr) return;

  // One row of sums from the block: the teams meet in shared memory, first dgamma's, then dbeta's.
  float* partial = p.partial + 2 * static_cast<std::int64_t>(blockIdx.x) * D;
  for (int which = 0; which < 2; ++which) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int at = column(c / kVector) + c % kVector;
      if (at < D) sums[mine * D + at] = which == 0 ? sum_gamma[c] : sum_beta[c];
    }
    __syncthreads();
    for (int at = static_cast<int>(threadIdx.x); at < D; at += kThreads) {
      float total = 0;
      for (int t = 0; t < teams; ++t) total += sums[t * D + at];
      partial[which * D + at] = total;
    }
    __syncthreads();
  }
}

// dx of rows of any length, a block each. RMSNorm leaves the statistics that long_columns reads.
template <class T, Norm norm>
__global__ void __launch_bounds__(kThreads) long_rows(Problem p, RowStatistics* found) {
  __shared__ float2 buffer[kWarps];
  const std::int64_t row = blockIdx.x;
  const T* x = static_cast<const T*>(p.x) + row * p.D;
  const T* dy = static_cast<const T*>(p.dy) + row * p.D;
  const float n = static_cast<float>(p.D), root = 1 / sqrtf(n);
  const float mean = norm == Norm::layer ? p.statistics[row].mean : 0;
  const float rstd = norm == Norm::layer ? p.statistics[row].rstd : 0;
  float2 sum{};
  for (std::int64_t i = threadIdx.x; i < p.D; i += kThreads) {
    sum = sum + terms_of<norm>(widen(x[i]), widen(dy[i]) * p.gamma[i], mean, rstd, root);
  }
  const RowTerms t = finish_terms<norm>(team_sum(sum, kWarps, buffer), mean, rstd, p.eps, n);
  if (found != nullptr && threadIdx.x == 0) found[row] = {t.mean, t.rstd};
  if (p.dx == nullptr) return;
  for (std::int64_t i = threadIdx.x; i < p.D; i += kThreads) {
    const float xhat = (widen(x[i]) - t.mean) * t.rstd;
    float result = t.rstd * (widen(dy[i]) * p.gamma[i] - t.mean_g - xhat * t.mean_gx);
    if (p.dres != nullptr) result += widen(static_cast<const T*>(p.dres)[row * p.D + i]);
    narrow(result, static_cast<T*>(p.dx) + row * p.D + i);
  }
}

// A thread for each column: its sums over the rows of group blockIdx.y.
template <class T>
__global__ void __launch_bounds__(kThreads) long_columns(Problem p) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (column >= p.D) return;
  float sum_gamma = 0, sum_beta = 0;
  for (std::int64_t row = blockIdx.y; row < p.rows; row += gridDim.y) {
    const RowStatistics s = p.statistics[row];
    const float d = widen(static_cast<const T*>(p.dy)[row * p.D + column]);
    sum_gamma += d * ((widen(static_cast<const T*>(p.x)[row * p.D + column]) - s.mean) * s.rstd);
    sum_beta += d;
  }
  float* partial = p.partial + 2 * static_cast<std::int64_t>(blockIdx.y) * p.D + column;
  partial[0] = sum_gamma;
  partial[p.D] = sum_beta;
}

// Adds up 32 columns of [parts, 2, D] by 8 warps; blockIdx.y: 0 for dgamma, 1 for dbeta.
__global__ void __launch_bounds__(kThreads)
    finish_columns(std::int64_t parts, std::int64_t D, const float* partial, float* dgamma,
                   float* dbeta) {
  __shared__ float sums[kWarps][kWarp];
  float* out = blockIdx.y == 0 ? dgamma : dbeta;
  if (out == nullptr) return;
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + lane;
  float sum = 0;
  for (std::int64_t i = warp; column < D && i < parts; i += kWarps) {
    sum += partial[(2 * i + blockIdx.y) * D + column];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= D) return;
  for (int w = 1; w < kWarps; ++w) sum += sums[w][lane];
  out[column] = sum;
}

// A block for each row.
template <class T>
__global__ void forward_rows(std::int64_t D, float eps, const T* x, const float* gamma,
                             const float* beta, T* y, RowStatistics* statistics) {
  __shared__ float2 buffers[3][kWarps];
  const std::int64_t row = blockIdx.x;
  x += row * D;
  y += row * D;
  const int threads = static_cast<int>(blockDim.x), warps = threads / kWarp;
  const float n = static_cast<float>(D), root = 1 / sqrtf(n);
  const auto row_sum = [&](auto term, float2* buffer) {
    float2 sum{};
    for (std::int64_t i = threadIdx.x; i < D; i += threads) sum.x += term(widen(x[i]));
    return team_sum(sum, warps, buffer).x;
  };
  float mean = row_sum([](float v) { return v; }, buffers[0]) / n;
  // The mean of what is left corrects the rounding of the first sum, which matters far from 0.
  mean += row_sum([mean](float v) { return v - mean; }, buffers[1]) / n;
  // Scaled before they are squared: the squares of large x overflow, their mean does not.
  const auto square = [mean, root](float v) { return (v - mean) * root * ((v - mean) * root); };
  const float rstd = 1 / sqrtf(row_sum(square, buffers[2]) + eps);
  for (std::int64_t i = threadIdx.x; i < D; i += threads) {
    narrow((widen(x[i]) - mean) * rstd * gamma[i] + beta[i], y + i);
  }
  if (threadIdx.x == 0) statistics[row] = {mean, rstd};
}

std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

cudaStream_t stream_of(const assay_ctx* ctx) { return static_cast<cudaStream_t>(ctx->stream); }

int launch_status() { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }

std::int64_t multiprocessors_of(const assay_ctx* ctx) {
  int n = 0;
  cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, ctx->device);
  return std::max(n, 1);
}

int check(const ln_params* p, bool present) {
  if (p == nullptr || p->size != sizeof(ln_params)) return ASSAY_EINVAL;
  if (p->rows < 0 || p->D < 0 || !(p->eps >= 0)) return ASSAY_EINVAL;
  if (p->rows > 0 && p->D > 0 && !present) return ASSAY_EINVAL;
  return p->dtype == ASSAY_F32 || p->dtype == ASSAY_BF16 ? ASSAY_OK : ASSAY_ENOTSUP;
}

bool all_aligned(const Problem& p, std::size_t element) {
  const auto aligned = [](const void* at, std::size_t bytes) {
    return reinterpret_cast<std::uintptr_t>(at) % bytes == 0;
  };
  return p.D % 4 == 0 && aligned(p.gamma, 4 * sizeof(float)) && aligned(p.x, 4 * element) &&
         aligned(p.dy, 4 * element) && aligned(p.dres, 4 * element) && aligned(p.dx, 4 * element);
}

template <class T, Norm norm, int kVector>
auto resident_kernel(std::int64_t D) {
  if (D <= 4 * kWarp) return &resident_rows<T, norm, kVector, 4>;
  return D <= 8 * kWarp ? &resident_rows<T, norm, kVector, 8>
                        : &resident_rows<T, norm, kVector, kMostColumns>;
}

template <class T, Norm norm>
int backward(assay_ctx* ctx, Problem p, float* dgamma, float* dbeta) {
  const cudaStream_t stream = stream_of(ctx);
  const bool sums = dgamma != nullptr || dbeta != nullptr;
  if (p.rows == 0) {
    const std::size_t bytes = static_cast<std::size_t>(p.D) * sizeof(float);
    if (dgamma != nullptr) cudaMemsetAsync(dgamma, 0, bytes, stream);
    if (dbeta != nullptr) cudaMemsetAsync(dbeta, 0, bytes, stream);
    return launch_status();
  }
  if (!sums && p.dx == nullptr) return ASSAY_OK;

  const bool resident = p.D <= kResident;
  p.warps_of_row = 1;
  while (resident && p.warps_of_row * kWarp * kMostColumns < p.D) p.warps_of_row *= 2;
  const std::int64_t teams = kWarps / p.warps_of_row;
  // A block's sums cost as much as a row: fewer blocks where rows are long.
  const std::int64_t most = multiprocessors_of(ctx) * (p.D > 1024 ? 1 : 2);
  const std::int64_t parts = resident ? std::min(divide_up(p.rows, teams), most)
                                      : std::clamp<std::int64_t>(p.rows / 64, 1, 64);
  const std::int64_t floats = sums ? 2 * parts * p.D : 0;
  const bool keeps_statistics = !resident && norm == Norm::rms && sums;
  const std::int64_t bytes = floats * std::int64_t{sizeof(float)} +
                             (keeps_statistics ? p.rows * std::int64_t{sizeof(RowStatistics)} : 0);
  void* scratch = nullptr;
  if (bytes > 0) {
    scratch = ctx->alloc(ctx, static_cast<std::size_t>(bytes), 256, 1);
    if (scratch == nullptr) return ASSAY_ENOMEM;
  }
  if (sums) p.partial = static_cast<float*>(scratch);

  if (resident) {
    const auto kernel = all_aligned(p, sizeof(T)) ? resident_kernel<T, norm, 4>(p.D)
                                                  : resident_kernel<T, norm, 1>(p.D);
    kernel<<<static_cast<unsigned>(parts), kThreads, 0, stream>>>(p);
  } else {
    RowStatistics* found =
        keeps_statistics ? reinterpret_cast<RowStatistics*>(p.partial + floats) : nullptr;
    if (p.dx != nullptr || found != nullptr)
      long_rows<T, norm><<<static_cast<unsigned>(p.rows), kThreads, 0, stream>>>(p, found);
    if (found != nullptr) p.statistics = found;
    const dim3 grid(static_cast<unsigned>(divide_up(p.D, kThreads)), static_cast<unsigned>(parts));
    if (sums) long_columns<T><<<grid, kThreads, 0, stream>>>(p);
  }
  if (sums) {
    finish_columns<<<dim3(static_cast<unsigned>(divide_up(p.D, kWarp)), 2), kThreads, 0, stream>>>(
        parts, p.D, p.partial, dgamma, dbeta);
  }
  if (scratch != nullptr) ctx->free(ctx, scratch);
  return launch_status();
}

template <Norm norm>
int backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x, const float* gamma,
             const void* cache, const void* dres, void* dx, float* dgamma, float* dbeta) {
  const bool present =
      dy != nullptr && x != nullptr && gamma != nullptr && (norm == Norm::rms || cache != nullptr);
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  if (p->D == 0) return ASSAY_OK;
  const Problem problem{.rows = p->rows,
                        .D = p->D,
                        .eps = p->eps,
                        .dy = dy,
                        .x = x,
                        .gamma = gamma,
                        .statistics = static_cast<const RowStatistics*>(cache),
                        .dres = dres,
                        .dx = dx,
                        .partial = nullptr,
                        .warps_of_row = 1};
  const auto run = p->dtype == ASSAY_F32 ? &backward<float, norm> : &backward<__nv_bfloat16, norm>;
  return run(ctx, problem, dgamma, dbeta);
}

template <class T>
int forward(assay_ctx* ctx, const ln_params& p, const void* x, const float* gamma,
            const float* beta, void* y, void* cache) {
  const int threads =
      static_cast<int>(std::min<std::int64_t>(divide_up(p.D, kWarp), kWarps)) * kWarp;
  forward_rows<T><<<static_cast<unsigned>(p.rows), threads, 0, stream_of(ctx)>>>(
      p.D, p.eps, static_cast<const T*>(x), gamma, beta, static_cast<T*>(y),
      static_cast<RowStatistics*>(cache));
  return launch_status();
}

}  // namespace

extern "C" std::size_t ln_cache_bytes(const ln_params* p) {
  if (check(p, true) == ASSAY_EINVAL) return 0;
  return static_cast<std::size_t>(p->rows) * sizeof(RowStatistics);
}

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  const bool present =
      x != nullptr && gamma != nullptr && beta != nullptr && y != nullptr && cache != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  if (p->rows == 0 || p->D == 0) return ASSAY_OK;
  const auto run = p->dtype == ASSAY_F32 ? &forward<float> : &forward<__nv_bfloat16>;
  return run(ctx, *p, x, gamma, beta, y, cache);
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  return backward<Norm::layer>(ctx, p, dy, x, gamma, cache, nullptr, dx, dgamma, dbeta);
}

extern "C" int ln_backward_residual(assay_ctx* ctx, const ln_params* p, const void* dy,
                                    const void* x, const float* gamma, const void* cache,
                                    const void* dres, void* dx, float* dgamma, float* dbeta) {
  if (check(p, true) == ASSAY_OK && p->rows > 0 && p->D > 0 && dres == nullptr) return ASSAY_EINVAL;
  return backward<Norm::layer>(ctx, p, dy, x, gamma, cache, dres, dx, dgamma, dbeta);
}

extern "C" int rms_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                            const float* gamma, void* dx, float* dgamma) {
  return backward<Norm::rms>(ctx, p, dy, x, gamma, nullptr, nullptr, dx, dgamma, nullptr);
}
