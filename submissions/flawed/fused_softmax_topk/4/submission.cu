// Sample entrant of assay, not a model's answer: plausible code with a bug that real answers had. A
// block has a row and makes three passes: maximum, sum of exponentials, and the K best one after
// the other.
//   block_sum gives every thread the sum of the whole block, and then adds it up over the warp once
//   more: the butterfly runs over lanes that already hold the total. The sum is 32 times too large,
//   and every probability 32 times too small; their order is right.
#include <climits>
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr unsigned kFullMask = 0xffffffffu;

struct Candidate {
  float value;
  int index;
};

__device__ __forceinline__ bool better(const Candidate& a, const Candidate& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

__device__ __forceinline__ float warp_max(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kFullMask, x, offset));
  }
  return x;
}

__device__ __forceinline__ float warp_sum(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    x += __shfl_xor_sync(kFullMask, x, offset);
  }
  return x;
}

__device__ __forceinline__ Candidate warp_best(Candidate c) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    Candidate other;
    other.value = __shfl_xor_sync(kFullMask, c.value, offset);
    other.index = __shfl_xor_sync(kFullMask, c.index, offset);
    if (better(other, c)) c = other;
  }
  return c;
}

// Block-wide reductions; every thread gets the result.
__device__ float block_max(float x, float* shared) {
  x = warp_max(x);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = x;
  __syncthreads();
  float result = shared[0];
  for (int w = 1; w < kThreads / kWarp; ++w) result = fmaxf(result, shared[w]);
  __syncthreads();
  return warp_max(result);
}

__device__ float block_sum(float x, float* shared) {
  x = warp_sum(x);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = x;
  __syncthreads();
  float result = 0.0f;
  for (int w = 0; w < kThreads / kWarp; ++w) result += shared[w];
  __syncthreads();
  return warp_sum(result);
}

__global__ void fused_softmax_topk(stk_params p, const float* __restrict__ logits,
                                   int* __restrict__ out_index, float* __restrict__ out_prob,
                                   float* __restrict__ out_lse) {
  __shared__ float shared[kThreads / kWarp];
  __shared__ Candidate warp_candidates[kThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const float* x = logits + row * p.ld;

  float thread_max = -INFINITY;
  bool poisoned = false;
  for (std::int64_t j = threadIdx.x; j < p.V; j += kThreads) {
    poisoned |= !(x[j] < INFINITY);
    thread_max = fmaxf(thread_max, x[j]);
  }
  const bool row_poisoned = __syncthreads_or(poisoned);
  const float row_max = block_max(thread_max, shared);

  float thread_sum = 0.0f;
  for (std::int64_t j = threadIdx.x; j < p.V; j += kThreads) {
    if (x[j] > -INFINITY) thread_sum += expf((x[j] - row_max) / p.temperature);
  }
  const float log_sum = logf(block_sum(thread_sum, shared));

  Candidate previous{INFINITY, -1};
  for (int k = 0; k < p.K; ++k) {
    Candidate best{-INFINITY, INT_MAX};
    for (std::int64_t j = threadIdx.x; j < p.V; j += kThreads) {
      const Candidate c{x[j], static_cast<int>(j)};
      if (better(previous, c) && better(c, best)) best = c;
    }
    best = warp_best(best);
    if (lane == 0) warp_candidates[warp] = best;
    __syncthreads();
    best = warp_candidates[0];
    for (int w = 1; w < kThreads / kWarp; ++w) {
      if (better(warp_candidates[w], best)) best = warp_candidates[w];
    }
    __syncthreads();
    previous = best;
    if (threadIdx.x == 0) {
      const float prob =
          best.value == -INFINITY ? 0.0f : expf((best.value - row_max) / p.temperature - log_sum);
      out_index[row * p.K + k] = row_poisoned || best.index == INT_MAX ? -1 : best.index;
      out_prob[row * p.K + k] = row_poisoned ? NAN : prob;
    }
  }
  if (threadIdx.x == 0 && out_lse != nullptr) {
    out_lse[row] = row_poisoned           ? NAN
                   : row_max == -INFINITY ? -INFINITY
                                          : row_max / p.temperature + log_sum;
  }
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits, int32_t* idx,
                            float* prob, float* lse) {
  if (p == nullptr || p->rows < 0 || p->V < 0 || p->K < 0 || p->ld < p->V ||
      !(p->temperature > 0)) {
    return ASSAY_EINVAL;
  }
  if (p->rows * p->V > 0 && logits == nullptr) return ASSAY_EINVAL;
  if (p->rows * p->K > 0 && (idx == nullptr || prob == nullptr)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32) return ASSAY_ENOTSUP;
  if (p->rows == 0) return ASSAY_OK;
  fused_softmax_topk<<<static_cast<unsigned>(p->rows), kThreads, 0,
                       static_cast<cudaStream_t>(ctx->stream)>>>(
      *p, static_cast<const float*>(logits), idx, prob, lse);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
