// Sample entrant of assay, not a model's answer: what a careful textbook would print, in CUDA. A
// warp takes a row, eight rows make a block, and a block of 32 x 8 threads adds up 32 columns of a
// group of rows, so that dgamma and dbeta need two stages and no atomics. Keeps mean and reciprocal
// standard deviation of each row. Supports NULL outputs, bf16, the fused residual and x near 1e19.
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kWarp = 32, kWarps = 8;     // of a block
constexpr std::int64_t kMaxGroups = 128;  // of rows, in the first stage of the column sums

struct RowStatistics {
  float mean, rstd;
};

__device__ float load(const float* p, std::int64_t i) { return p[i]; }
__device__ float load(const __nv_bfloat16* p, std::int64_t i) { return __bfloat162float(p[i]); }
__device__ void store(float* p, std::int64_t i, float x) { p[i] = x; }
__device__ void store(__nv_bfloat16* p, std::int64_t i, float x) { p[i] = __float2bfloat16(x); }

// The sum over a warp, in every lane.
__device__ float warp_sum(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

__device__ std::int64_t row_of_warp() {
  return static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.y;
}

template <class T>
__global__ void forward_rows(std::int64_t rows, std::int64_t D, float eps, const T* x,
                             const float* gamma, const float* beta, T* y,
                             RowStatistics* statistics) {
  const std::int64_t row = row_of_warp();
  if (row >= rows) return;
  x += row * D;
  y += row * D;
  const auto n = static_cast<float>(D);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < D; i += kWarp) sum += load(x, i);
  float mean = warp_sum(sum) / n;
  // The mean of what is left corrects the rounding of the first sum, which matters far from 0.
  sum = 0;
  for (std::int64_t i = threadIdx.x; i < D; i += kWarp) sum += load(x, i) - mean;
  mean += warp_sum(sum) / n;
  // Scaled before they are squared: the squares of large x overflow, their mean does not.
  const float root = 1 / sqrtf(n);
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < D; i += kWarp) {
    const float d = (load(x, i) - mean) * root;
    squares += d * d;
  }
  const float rstd = 1 / sqrtf(warp_sum(squares) + eps);
  for (std::int64_t i = threadIdx.x; i < D; i += kWarp) {
    store(y, i, (load(x, i) - mean) * rstd * gamma[i] + beta[i]);
  }
  if (threadIdx.x == 0) statistics[row] = {mean, rstd};
}

// dx of one row by each warp. `dres` may be null.
template <class T>
__global__ void input_gradient(std::int64_t rows, std::int64_t D, const T* dy, const T* x,
                               const float* gamma, const RowStatistics* statistics, const T* dres,
                               T* dx) {
  const std::int64_t row = row_of_warp();
  if (row >= rows) return;
  const auto [mean, rstd] = statistics[row];
  float sum_g = 0, sum_gx = 0;
  for (std::int64_t i = threadIdx.x; i < D; i += kWarp) {
    const float g = load(dy, row * D + i) * gamma[i];
    sum_g += g;
    sum_gx += g * ((load(x, row * D + i) - mean) * rstd);
  }
  const float mean_g = warp_sum(sum_g) / static_cast<float>(D);
  const float mean_gx = warp_sum(sum_gx) / static_cast<float>(D);
  for (std::int64_t i = threadIdx.x; i < D; i += kWarp) {
    const float g = load(dy, row * D + i) * gamma[i];
    const float xhat = (load(x, row * D + i) - mean) * rstd;
    float result = rstd * (g - mean_g - xhat * mean_gx);
    if (dres != nullptr) result += load(dres, row * D + i);
    store(dx, row * D + i, result);
  }
}

// First stage: block (c, g) adds up 32 columns over the g-th group of rows. partial_* [groups, D].
template <class T>
__global__ void partial_column_sums(std::int64_t rows, std::int64_t D, std::int64_t rows_per_group,
                                    const T* dy, const T* x, const RowStatistics* statistics,
                                    float* partial_gamma, float* partial_beta) {
  __shared__ float shared_gamma[kWarps][kWarp], shared_beta[kWarps][kWarp];
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  const std::int64_t begin = blockIdx.y * rows_per_group;
  const std::int64_t end = min(begin + rows_per_group, rows);
  float sum_gamma = 0, sum_beta = 0;
  for (std::int64_t row = begin + threadIdx.y; column < D && row < end; row += kWarps) {
    const auto [mean, rstd] = statistics[row];
    const float d = load(dy, row * D + column);
    sum_gamma += d * ((load(x, row * D + column) - mean) * rstd);
    sum_beta += d;
  }
  shared_gamma[threadIdx.y][threadIdx.x] = sum_gamma;
  shared_beta[threadIdx.y][threadIdx.x] = sum_beta;
  __syncthreads();
  if (threadIdx.y != 0 || column >= D) return;
  for (int w = 1; w < kWarps; ++w) {
    sum_gamma += shared_gamma[w][threadIdx.x];
    sum_beta += shared_beta[w][threadIdx.x];
  }
  partial_gamma[blockIdx.y * D + column] = sum_gamma;
  partial_beta[blockIdx.y * D + column] = sum_beta;
}

// Second stage: a thread adds up the groups of one column, two sums at a time. Either output may be
// null.
__global__ void finish_column_sums(std::int64_t groups, std::int64_t D, const float* partial_gamma,
                                   const float* partial_beta, float* dgamma, float* dbeta) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= D) return;
  const auto column_sum = [&](const float* partial) {
    float even = 0, odd = 0;
    for (std::int64_t g = 0; g < groups; g += 2) {
      even += partial[g * D + column];
      if (g + 1 < groups) odd += partial[(g + 1) * D + column];
    }
    return even + odd;
  };
  if (dgamma != nullptr) dgamma[column] = column_sum(partial_gamma);
  if (dbeta != nullptr) dbeta[column] = column_sum(partial_beta);
}

std::int64_t blocks_for(std::int64_t n, std::int64_t per_block) {
  return (n + per_block - 1) / per_block;
}

cudaStream_t stream_of(const assay_ctx* ctx) { return static_cast<cudaStream_t>(ctx->stream); }

int launch_status() { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }

int check(const ln_params* p, bool pointers_present) {
  if (p == nullptr || p->size != sizeof(ln_params)) return ASSAY_EINVAL;
  if (p->rows < 0 || p->D < 0 || !(p->eps >= 0)) return ASSAY_EINVAL;
  if (p->rows * p->D > 0 && !pointers_present) return ASSAY_EINVAL;
  return p->dtype == ASSAY_F32 || p->dtype == ASSAY_BF16 ? ASSAY_OK : ASSAY_ENOTSUP;
}

template <class T>
int forward(assay_ctx* ctx, const ln_params& p, const void* x, const float* gamma,
            const float* beta, void* y, void* cache) {
  const auto grid = static_cast<unsigned>(blocks_for(p.rows, kWarps));
  forward_rows<T><<<grid, dim3(kWarp, kWarps), 0, stream_of(ctx)>>>(
      p.rows, p.D, p.eps, static_cast<const T*>(x), gamma, beta, static_cast<T*>(y),
      static_cast<RowStatistics*>(cache));
  return launch_status();
}

template <class T>
int column_sums(assay_ctx* ctx, const ln_params& p, const T* dy, const T* x,
                const RowStatistics* statistics, float* dgamma, float* dbeta) {
  const std::int64_t rows_per_group = std::max<std::int64_t>(32, blocks_for(p.rows, kMaxGroups));
  const std::int64_t groups = blocks_for(p.rows, rows_per_group);
  const auto floats = static_cast<std::size_t>(groups * p.D);
  auto* partial = static_cast<float*>(ctx->alloc(ctx, 2 * floats * sizeof(float), 256, 1));
  if (partial == nullptr) return ASSAY_ENOMEM;
  const dim3 grid(static_cast<unsigned>(blocks_for(p.D, kWarp)), static_cast<unsigned>(groups));
  partial_column_sums<T><<<grid, dim3(kWarp, kWarps), 0, stream_of(ctx)>>>(
      p.rows, p.D, rows_per_group, dy, x, statistics, partial, partial + floats);
  finish_column_sums<<<static_cast<unsigned>(blocks_for(p.D, 128)), 128, 0, stream_of(ctx)>>>(
      groups, p.D, partial, partial + floats, dgamma, dbeta);
  ctx->free(ctx, partial);
  return launch_status();
}

template <class T>
int backward(assay_ctx* ctx, const ln_params& p, const void* dy_data, const void* x_data,
             const float* gamma, const void* cache, const void* dres, void* dx, float* dgamma,
             float* dbeta) {
  const auto* dy = static_cast<const T*>(dy_data);
  const auto* x = static_cast<const T*>(x_data);
  const auto* statistics = static_cast<const RowStatistics*>(cache);
  if (dgamma != nullptr || dbeta != nullptr) {
    const int status = column_sums(ctx, p, dy, x, statistics, dgamma, dbeta);
    if (status != ASSAY_OK) return status;
  }
  if (dx == nullptr) return ASSAY_OK;
  const auto grid = static_cast<unsigned>(blocks_for(p.rows, kWarps));
  input_gradient<T><<<grid, dim3(kWarp, kWarps), 0, stream_of(ctx)>>>(
      p.rows, p.D, dy, x, gamma, statistics, static_cast<const T*>(dres), static_cast<T*>(dx));
  return launch_status();
}

int backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x, const float* gamma,
             const void* cache, const void* dres, void* dx, float* dgamma, float* dbeta) {
  const bool present = dy != nullptr && x != nullptr && gamma != nullptr && cache != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  if (p->D == 0) return ASSAY_OK;
  if (p->rows == 0) {
    const auto bytes = static_cast<std::size_t>(p->D) * sizeof(float);
    if (dgamma != nullptr) cudaMemsetAsync(dgamma, 0, bytes, stream_of(ctx));
    if (dbeta != nullptr) cudaMemsetAsync(dbeta, 0, bytes, stream_of(ctx));
    return launch_status();
  }
  const auto run = p->dtype == ASSAY_F32 ? backward<float> : backward<__nv_bfloat16>;
  return run(ctx, *p, dy, x, gamma, cache, dres, dx, dgamma, dbeta);
}

}  // namespace

extern "C" std::size_t ln_cache_bytes(const ln_params* p) {
  return check(p, true) == ASSAY_EINVAL ? 0
                                        : static_cast<std::size_t>(p->rows) * sizeof(RowStatistics);
}

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  const bool present =
      x != nullptr && gamma != nullptr && beta != nullptr && y != nullptr && cache != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  if (p->rows * p->D == 0) return ASSAY_OK;
  const auto run = p->dtype == ASSAY_F32 ? forward<float> : forward<__nv_bfloat16>;
  return run(ctx, *p, x, gamma, beta, y, cache);
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  return backward(ctx, p, dy, x, gamma, cache, nullptr, dx, dgamma, dbeta);
}

extern "C" int ln_backward_residual(assay_ctx* ctx, const ln_params* p, const void* dy,
                                    const void* x, const float* gamma, const void* cache,
                                    const void* dres, void* dx, float* dgamma, float* dbeta) {
  if (check(p, true) == ASSAY_OK && p->rows * p->D > 0 && dres == nullptr) return ASSAY_EINVAL;
  return backward(ctx, p, dy, x, gamma, cache, dres, dx, dgamma, dbeta);
}
