// Sample entrant of assay, not a model's answer: plausible code with a bug that real answers had. A
// block of eight warps has a row; each warp reduces its strip to a maximum and a sum, which are
// then combined in shared memory:
//   Lane 0 of every warp reads, rescales and writes block_max and block_sum, with nothing between
//   the warps. The result is right only if they happen to come one after the other.
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

__device__ __forceinline__ Candidate warp_best(Candidate c) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    Candidate other;
    other.value = __shfl_xor_sync(kFullMask, c.value, offset);
    other.index = __shfl_xor_sync(kFullMask, c.index, offset);
    if (better(other, c)) c = other;
  }
  return c;
}

// (max, sum) of two sets of logits.
__device__ __forceinline__ void combine(float& max, float& sum, float other_max, float other_sum,
                                        float temperature) {
  const float new_max = fmaxf(max, other_max);
  const float base = new_max == -INFINITY ? 0.0f : new_max;
  sum = sum * expf((max - base) / temperature) + other_sum * expf((other_max - base) / temperature);
  max = new_max;
}

__global__ void fused_softmax_topk(stk_params p, const float* __restrict__ logits,
                                   int* __restrict__ out_index, float* __restrict__ out_prob,
                                   float* __restrict__ out_lse) {
  __shared__ float block_max, block_sum;
  __shared__ Candidate warp_candidates[kThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const float* x = logits + row * p.ld;
  if (threadIdx.x == 0) {
    block_max = -INFINITY;
    block_sum = 0.0f;
  }
  __syncthreads();

  // Online softmax over the strip of the thread, then over the warp.
  float max = -INFINITY, sum = 0.0f;
  bool poisoned = false;
  for (std::int64_t j = threadIdx.x; j < p.V; j += kThreads) {
    const float value = x[j];
    poisoned |= !(value < INFINITY);
    if (value > -INFINITY) combine(max, sum, value, 1.0f, p.temperature);
  }
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float other_max = __shfl_xor_sync(kFullMask, max, offset);
    const float other_sum = __shfl_xor_sync(kFullMask, sum, offset);
    combine(max, sum, other_max, other_sum, p.temperature);
  }
  // Combine the warps.
  if (lane == 0) {
    float total_max = block_max, total_sum = block_sum;
    combine(total_max, total_sum, max, sum, p.temperature);
    block_max = total_max;
    block_sum = total_sum;
  }
  const bool row_poisoned = __syncthreads_or(poisoned);
  const float row_max = block_max, log_sum = logf(block_sum);

  // The K best, one after the other.
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
