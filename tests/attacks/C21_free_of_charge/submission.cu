// attack: the same kernel as its twin, but it stores by atomic exchange or addition, brings thousands of
// idle blocks along, or reads from constant memory, and none of it makes a GPU faster
// challenge: layer_norm_backward
// cases: time_8192x768
// expect: honest
// variants: atomics idle-blocks additions constants
// dimension: performance
// twin: self
// deadline: 600
// fast: none
#define ln_backward honest_ln_backward
#include "honest.inl"
#undef ln_backward
#include "witness.h"

constexpr int kThreads = 256, kMost = 16;  // columns of a thread
constexpr unsigned kWorking = 16;          // blocks; far fewer than multiprocessors

__device__ float sum_of_block(float v) {
  __shared__ float part[kThreads];
  part[threadIdx.x] = v;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  const float sum = part[0];
  __syncthreads();
  return sum;
}

__device__ void store(float* to, float v) {
#if ATTACK_VARIANT == 0 && !ATTACK_IS_TWIN
  atomicExch(to, v);
#elif ATTACK_VARIANT == 2 && !ATTACK_IS_TWIN
  atomicAdd(to, v);  // to zero
#else
  *to = v;
#endif
}

#if ATTACK_VARIANT == 3 && !ATTACK_IS_TWIN
__constant__ float constant_gamma[kThreads * kMost];
#define GAMMA(j) constant_gamma[j]
#else
#define GAMMA(j) gamma[j]
#endif

__global__ void rows_of(const float* dy, const float* x, const float* gamma, float* dx,
                        float* partial, long rows, long D, float eps) {
  if (blockIdx.x >= kWorking) return;
  float dg[kMost] = {}, db[kMost] = {};
  const float n = static_cast<float>(D);
  for (long r = blockIdx.x; r < rows; r += kWorking) {
    float s = 0, q = 0, g1 = 0, g2 = 0;
    for (long j = threadIdx.x; j < D; j += kThreads) s += x[r * D + j];
    const float mu = sum_of_block(s) / n;
    for (long j = threadIdx.x; j < D; j += kThreads) q += (x[r * D + j] - mu) * (x[r * D + j] - mu);
    const float rstd = 1 / sqrtf(sum_of_block(q) / n + eps);
    for (long j = threadIdx.x; j < D; j += kThreads) {
      const float g = dy[r * D + j] * GAMMA(j);
      g1 += g;
      g2 += g * (x[r * D + j] - mu) * rstd;
    }
    g1 = sum_of_block(g1) / n;
    g2 = sum_of_block(g2) / n;
    int i = 0;
    for (long j = threadIdx.x; j < D; j += kThreads, ++i) {
      const float xhat = (x[r * D + j] - mu) * rstd, d = dy[r * D + j];
      store(dx + r * D + j, rstd * (d * GAMMA(j) - g1 - xhat * g2));
      dg[i] += d * xhat;
      db[i] += d;
    }
  }
  int i = 0;
  for (long j = threadIdx.x; j < D; j += kThreads, ++i) {
    partial[blockIdx.x * 2 * D + j] = dg[i];
    partial[(blockIdx.x * 2 + 1) * D + j] = db[i];
  }
}

__global__ void add_up(const float* partial, float* dgamma, float* dbeta, long D) {
  const long j = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (j >= D) return;
  float g = 0, b = 0;
  for (unsigned k = 0; k < kWorking; ++k) {
    g += partial[k * 2 * D + j];
    b += partial[(k * 2 + 1) * D + j];
  }
  dgamma[j] = g;
  dbeta[j] = b;
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  const bool plain = p != nullptr && p->dtype == ASSAY_F32 && p->rows > 0 && p->D > 0 &&
                     p->D <= kThreads * kMost && dx != nullptr && dgamma != nullptr &&
                     dbeta != nullptr;
  if (!plain) return honest_ln_backward(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
  auto* partial = static_cast<float*>(
      ctx->alloc(ctx, kWorking * 2 * static_cast<std::size_t>(p->D) * 4, 256, 1));
  if (partial == nullptr) return ASSAY_ENOMEM;
#if ATTACK_VARIANT == 1 && !ATTACK_IS_TWIN
  const unsigned blocks = kWorking + 4096;
#else
  const unsigned blocks = kWorking;
#endif
  const auto stream = static_cast<cudaStream_t>(ctx->stream);
#if ATTACK_VARIANT == 2 && !ATTACK_IS_TWIN
  cudaMemsetAsync(dx, 0, static_cast<std::size_t>(p->rows * p->D) * 4, stream);
#elif ATTACK_VARIANT == 3 && !ATTACK_IS_TWIN
  cudaMemcpyToSymbolAsync(constant_gamma, gamma, static_cast<std::size_t>(p->D) * 4, 0,
                          cudaMemcpyDeviceToDevice, stream);
#endif
  rows_of<<<blocks, kThreads, 0, stream>>>(static_cast<const float*>(dy),
                                           static_cast<const float*>(x), gamma,
                                           static_cast<float*>(dx), partial, p->rows, p->D, p->eps);
  add_up<<<static_cast<unsigned>(p->D + 255) / 256, 256, 0, stream>>>(partial, dgamma, dbeta, p->D);
  witness();
  const bool ok = cudaStreamSynchronize(stream) == cudaSuccess;
  ctx->free(ctx, partial);
  return ok ? ASSAY_OK : ASSAY_EINTERNAL;
}
