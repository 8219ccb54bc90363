// Sample entrant of assay, not a model's answer: plausible code with a bug that real answers had.
// Each of the eight warps of a block has a row of its own, keeps the row's K best in shared memory
// and sums its exponentials online. Then warp 0 merges "the warps' candidates" as if all of them
// belonged to one row:
//   The merge across warps mixes rows. It is right only where a block has a single row; otherwise
//   the block's first row gets the best of eight rows, and the others are never written.
#include <climits>
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 8;
constexpr int kMaxK = 256;
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

// Online softmax: maximum and sum over a warp.
__device__ __forceinline__ void warp_softmax(float& max, float& sum, float inv_temp) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float other_max = __shfl_xor_sync(kFullMask, max, offset);
    const float other_sum = __shfl_xor_sync(kFullMask, sum, offset);
    const float new_max = fmaxf(max, other_max);
    const float base = new_max == -INFINITY ? 0.0f : new_max;
    sum = sum * expf((max - base) * inv_temp) + other_sum * expf((other_max - base) * inv_temp);
    max = new_max;
  }
}

__global__ void fused_softmax_topk(stk_params p, const float* __restrict__ logits,
                                   int* __restrict__ out_index, float* __restrict__ out_prob,
                                   float* __restrict__ out_lse) {
  __shared__ Candidate candidates[kWarpsPerBlock][kMaxK];
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarpsPerBlock + warp;
  const bool valid = row < p.rows;
  const float inv_temp = 1.0f / p.temperature;

  float max = -INFINITY, sum = 0.0f;
  bool poisoned = false;
  if (valid) {
    const float* x = logits + row * p.ld;
    // Softmax statistics in one pass.
    for (std::int64_t j = lane; j < p.V; j += kWarp) {
      const float value = x[j];
      poisoned |= !(value < INFINITY);
      if (value > max) {
        sum = sum * expf((max - value) * inv_temp) + 1.0f;
        max = value;
      } else if (value > -INFINITY) {
        sum += expf((value - max) * inv_temp);
      }
    }
    warp_softmax(max, sum, inv_temp);
    // The K best of the row, one after the other.
    Candidate previous{INFINITY, -1};
    for (int k = 0; k < p.K; ++k) {
      Candidate best{-INFINITY, INT_MAX};
      for (std::int64_t j = lane; j < p.V; j += kWarp) {
        const Candidate c{x[j], static_cast<int>(j)};
        if (better(previous, c) && better(c, best)) best = c;
      }
      previous = warp_best(best);
      if (lane == 0) candidates[warp][k] = previous;
    }
  } else {
    for (int k = lane; k < p.K; k += kWarp) candidates[warp][k] = {-INFINITY, INT_MAX};
  }
  const bool row_poisoned = __any_sync(kFullMask, poisoned);
  __syncthreads();

  // Merge the candidates of all warps: a tournament between the heads of the sorted lists.
  if (warp == 0 && valid) {
    int head = 0;
    for (int k = 0; k < p.K; ++k) {
      Candidate c{-INFINITY, INT_MAX};
      if (lane < kWarpsPerBlock && head < p.K) c = candidates[lane][head];
      const Candidate best = warp_best(c);
      if (lane < kWarpsPerBlock && head < p.K && c.index == best.index && c.value == best.value) {
        ++head;
      }
      if (lane == 0) {
        const std::int64_t at = row * p.K + k;
        const float prob =
            best.value == -INFINITY ? 0.0f : expf((best.value - max) * inv_temp - logf(sum));
        out_index[at] = row_poisoned || best.index == INT_MAX ? -1 : best.index;
        out_prob[at] = row_poisoned ? NAN : prob;
      }
    }
  }
  if (lane == 0 && valid && out_lse != nullptr) {
    out_lse[row] = row_poisoned ? NAN : max == -INFINITY ? -INFINITY : max * inv_temp + logf(sum);
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
  if (p->dtype != ASSAY_F32 || p->K > kMaxK) return ASSAY_ENOTSUP;
  if (p->rows == 0) return ASSAY_OK;
  const unsigned blocks = static_cast<unsigned>((p->rows + kWarpsPerBlock - 1) / kWarpsPerBlock);
  fused_softmax_topk<<<blocks, kWarpsPerBlock * kWarp, 0, static_cast<cudaStream_t>(ctx->stream)>>>(
      *p, static_cast<const float*>(logits), idx, prob, lse);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
