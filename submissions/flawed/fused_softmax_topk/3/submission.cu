// Sample entrant of assay, not a model's answer: plausible code with a bug that real answers had. A
// warp has a row; every lane keeps the 32 best of its strip in a sorted list in registers, and the
// lists are merged by shuffles:
//   Slot k of the result is the best of what the lanes hold at rank k. A lane whose strip has two
//   of the winners offers its second only for slot 1, and most winners are never seen: only slot 0
//   is right.
#include <climits>
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 4;
constexpr int kMaxK = 32;
constexpr unsigned kFullMask = 0xffffffffu;

struct Candidate {
  float value;
  int index;
};

__device__ __forceinline__ bool better(const Candidate& a, const Candidate& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

// A sorted list that fits in registers: every loop is unrolled.
struct LocalTopK {
  Candidate items[kMaxK];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kMaxK; ++i) items[i] = {-INFINITY, INT_MAX};
  }

  __device__ __forceinline__ void insert(Candidate c) {
    if (!better(c, items[kMaxK - 1])) return;
#pragma unroll
    for (int i = 0; i < kMaxK; ++i) {
      if (better(c, items[i])) {
        const Candidate moved = items[i];
        items[i] = c;
        c = moved;
      }
    }
  }
};

__device__ __forceinline__ Candidate warp_best(Candidate c) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    Candidate other;
    other.value = __shfl_xor_sync(kFullMask, c.value, offset);
    other.index = __shfl_xor_sync(kFullMask, c.index, offset);
    if (better(other, c)) c = other;
  }
  return c;
}

__global__ void fused_softmax_topk(stk_params p, const float* __restrict__ logits,
                                   int* __restrict__ out_index, float* __restrict__ out_prob,
                                   float* __restrict__ out_lse) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (row >= p.rows) return;
  const float* x = logits + row * p.ld;

  // One pass: online softmax and the lane's list.
  LocalTopK local;
  local.clear();
  float max = -INFINITY, sum = 0.0f;
  bool poisoned = false;
  for (std::int64_t j = lane; j < p.V; j += kWarp) {
    const float value = x[j];
    poisoned |= !(value < INFINITY);
    if (value > max) {
      sum = sum * expf((max - value) / p.temperature) + 1.0f;
      max = value;
    } else if (value > -INFINITY) {
      sum += expf((value - max) / p.temperature);
    }
    local.insert({value, static_cast<int>(j)});
  }
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float other_max = __shfl_xor_sync(kFullMask, max, offset);
    const float other_sum = __shfl_xor_sync(kFullMask, sum, offset);
    const float new_max = fmaxf(max, other_max);
    const float base = new_max == -INFINITY ? 0.0f : new_max;
    sum = sum * expf((max - base) / p.temperature) +
          other_sum * expf((other_max - base) / p.temperature);
    max = new_max;
  }
  const bool row_poisoned = __any_sync(kFullMask, poisoned);
  const float log_sum = logf(sum);

  // Warp-level merge: the lists are sorted, so the winner of every rank comes from that rank.
#pragma unroll
  for (int k = 0; k < kMaxK; ++k) {
    const Candidate best = warp_best(local.items[k]);
    if (lane == 0 && k < p.K) {
      const float prob =
          best.value == -INFINITY ? 0.0f : expf((best.value - max) / p.temperature - log_sum);
      out_index[row * p.K + k] = row_poisoned || best.index == INT_MAX ? -1 : best.index;
      out_prob[row * p.K + k] = row_poisoned ? NAN : prob;
    }
  }
  if (lane == 0 && out_lse != nullptr) {
    out_lse[row] = row_poisoned       ? NAN
                   : max == -INFINITY ? -INFINITY
                                      : max / p.temperature + log_sum;
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
