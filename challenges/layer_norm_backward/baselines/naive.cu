// The plain CUDA implementation: a thread for each row, a thread for each column, fp64 sums. The
// cache is mean and reciprocal standard deviation of every row, fp32. fp32 only, and no optional
// function.
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kThreads = 128;

struct Statistics {
  float mean, rstd;
};

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void forward_row(std::int64_t rows, std::int64_t D, float eps, const float* x,
                            const float* gamma, const float* beta, float* y, Statistics* cache) {
  const std::int64_t row = thread_index();
  if (row >= rows) return;
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < D; ++i) sum += x[row * D + i];
  const double mean = sum / static_cast<double>(D);
  for (std::int64_t i = 0; i < D; ++i) {
    const double d = x[row * D + i] - mean;
    squares += d * d;
  }
  const double rstd = 1 / sqrt(squares / static_cast<double>(D) + eps);
  cache[row] = {static_cast<float>(mean), static_cast<float>(rstd)};
  for (std::int64_t i = 0; i < D; ++i) {
    y[row * D + i] = static_cast<float>((x[row * D + i] - mean) * rstd * gamma[i] + beta[i]);
  }
}

__global__ void backward_row(std::int64_t rows, std::int64_t D, const float* dy, const float* x,
                             const float* gamma, const Statistics* cache, float* dx) {
  const std::int64_t row = thread_index();
  if (row >= rows) return;
  const Statistics s = cache[row];
  double mean_g = 0, mean_gx = 0;
  for (std::int64_t i = 0; i < D; ++i) {
    const double g = static_cast<double>(dy[row * D + i]) * gamma[i];
    mean_g += g;
    mean_gx += g * ((static_cast<double>(x[row * D + i]) - s.mean) * s.rstd);
  }
  mean_g /= static_cast<double>(D);
  mean_gx /= static_cast<double>(D);
  for (std::int64_t i = 0; i < D; ++i) {
    const double xhat = (static_cast<double>(x[row * D + i]) - s.mean) * s.rstd;
    const double g = static_cast<double>(dy[row * D + i]) * gamma[i];
    dx[row * D + i] = static_cast<float>(s.rstd * (g - mean_g - xhat * mean_gx));
  }
}

__global__ void backward_column(std::int64_t rows, std::int64_t D, const float* dy, const float* x,
                                const Statistics* cache, float* dgamma, float* dbeta) {
  const std::int64_t column = thread_index();
  if (column >= D) return;
  double sum_gamma = 0, sum_beta = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double d = dy[row * D + column];
    sum_gamma +=
        d * ((static_cast<double>(x[row * D + column]) - cache[row].mean) * cache[row].rstd);
    sum_beta += d;
  }
  dgamma[column] = static_cast<float>(sum_gamma);
  dbeta[column] = static_cast<float>(sum_beta);
}

unsigned blocks(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

int check(const ln_params* p, bool pointers_present) {
  if (p == nullptr || p->size != sizeof(ln_params)) return ASSAY_EINVAL;
  if (p->rows < 0 || p->D < 0 || !(p->eps >= 0)) return ASSAY_EINVAL;
  if (p->rows * p->D > 0 && !pointers_present) return ASSAY_EINVAL;
  return p->dtype == ASSAY_F32 ? ASSAY_OK : ASSAY_ENOTSUP;
}

int launch_status() { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }

}  // namespace

extern "C" std::size_t ln_cache_bytes(const ln_params* p) {
  return check(p, true) == ASSAY_EINVAL ? 0
                                        : static_cast<std::size_t>(p->rows) * sizeof(Statistics);
}

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  const bool present =
      x != nullptr && gamma != nullptr && beta != nullptr && y != nullptr && cache != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  if (p->rows * p->D == 0) return ASSAY_OK;
  forward_row<<<blocks(p->rows), kThreads, 0, static_cast<cudaStream_t>(ctx->stream)>>>(
      p->rows, p->D, p->eps, static_cast<const float*>(x), gamma, beta, static_cast<float*>(y),
      static_cast<Statistics*>(cache));
  return launch_status();
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  const bool present = dy != nullptr && x != nullptr && gamma != nullptr && cache != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  if (p->D == 0) return ASSAY_OK;
  if (dgamma == nullptr || dbeta == nullptr || (dx == nullptr && p->rows > 0)) return ASSAY_ENOTSUP;
  const auto stream = static_cast<cudaStream_t>(ctx->stream);
  const auto* d = static_cast<const float*>(dy);
  const auto* v = static_cast<const float*>(x);
  const auto* statistics = static_cast<const Statistics*>(cache);
  if (p->rows > 0) {
    backward_row<<<blocks(p->rows), kThreads, 0, stream>>>(p->rows, p->D, d, v, gamma, statistics,
                                                           static_cast<float*>(dx));
  }
  backward_column<<<blocks(p->D), kThreads, 0, stream>>>(p->rows, p->D, d, v, statistics, dgamma,
                                                         dbeta);
  return launch_status();
}
