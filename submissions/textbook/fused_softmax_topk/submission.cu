// Sample entrant of assay, not a model's answer: what a careful textbook would print, in CUDA. A
// block passes over its row once. Every thread keeps a running maximum and sum of its strip; what
// beats the K-th best so far goes to a buffer in shared memory, which is sorted and cut to K
// whenever it is full. The order (value, then column) is total, so that the result does not depend
// on who came first. Supports bf16 and logarithms of probabilities; K up to 1024.
#include <cuda_bf16.h>

#include <climits>
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kWarp = 32, kMaxThreads = 256;
constexpr int kEntries = 2048, kMaxK = 1024;  // of the list in shared memory; the K best come first

__device__ float load(const float* p, std::int64_t i) { return p[i]; }
__device__ float load(const __nv_bfloat16* p, std::int64_t i) { return __bfloat162float(p[i]); }

struct Entry {
  float value;
  int column;
};

__device__ bool better(const Entry& a, const Entry& b) {
  return a.value > b.value || (a.value == b.value && a.column < b.column);
}

__device__ Entry worst() { return {-INFINITY, INT_MAX}; }

// The sum of e^((x - max) / T) over a set of logits, which may hold no finite one.
struct Partial {
  float max, sum;

  __device__ void add(float x, float T) {
    if (x > max) {
      sum = sum * expf((max - x) / T) + 1;
      max = x;
    } else if (x > -INFINITY) {
      sum += expf((x - max) / T);
    }
  }
  __device__ void merge(const Partial& other, float T) {
    if (other.max == -INFINITY) return;
    if (other.max > max) {
      sum = sum * expf((max - other.max) / T) + other.sum;
      max = other.max;
    } else {
      sum += other.sum * expf((other.max - max) / T);
    }
  }
};

// Sorts the first n entries, best first. All threads call it; it begins and ends with a barrier.
__device__ void sort(Entry* entries, int n) {
  int size = kWarp;
  while (size < n) size *= 2;
  for (int i = n + static_cast<int>(threadIdx.x); i < size; i += blockDim.x) entries[i] = worst();
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      for (int pair = threadIdx.x; pair < size / 2; pair += blockDim.x) {
        const int low = pair / step * 2 * step + pair % step, high = low + step;
        const bool descending = (low & run) == 0;
        if (better(entries[high], entries[low]) == descending) {
          const Entry swapped = entries[low];
          entries[low] = entries[high];
          entries[high] = swapped;
        }
      }
      __syncthreads();
    }
  }
}

// Every thread gets the block's.
__device__ Partial block_merge(Partial p, float T, Partial* shared) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    Partial other;
    other.max = __shfl_xor_sync(~0u, p.max, offset);
    other.sum = __shfl_xor_sync(~0u, p.sum, offset);
    p.merge(other, T);
  }
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = p;
  __syncthreads();
  Partial all{-INFINITY, 0};
  for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) all.merge(shared[w], T);
  return all;
}

template <class T>
__global__ void one_row(stk_params p, const T* logits, bool logarithm, std::int32_t* idx,
                        float* prob, float* lse) {
  __shared__ Entry entries[kEntries];
  __shared__ int candidates;  // entries behind the K best
  __shared__ Partial partials[kMaxThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  const int K = p.K, threads = blockDim.x, thread = threadIdx.x;
  logits += row * p.ld;
  idx += row * K;
  prob += row * K;
  for (int k = thread; k < K; k += threads) entries[k] = worst();
  if (thread == 0) candidates = 0;
  __syncthreads();

  Partial partial{-INFINITY, 0};
  bool poisoned = false;
  for (std::int64_t first = 0; first < p.V; first += threads) {
    const std::int64_t column = first + thread;
    if (column < p.V) {
      const Entry entry{load(logits, column), static_cast<int>(column)};
      poisoned |= !(entry.value < INFINITY);  // NaN or +inf
      partial.add(entry.value, p.temperature);
      if (K > 0 && better(entry, entries[K - 1])) entries[K + atomicAdd(&candidates, 1)] = entry;
    }
    __syncthreads();
    const int n = candidates;
    __syncthreads();
    const bool last = first + threads >= p.V;
    if (n > 0 && (last || n > kEntries - K - threads)) {  // no room for another tile
      if (thread == 0) candidates = 0;
      sort(entries, K + n);
    }
  }

  const Partial all = block_merge(partial, p.temperature, partials);
  const bool masked_row = all.max == -INFINITY;
  const float log_sum = logf(all.sum);
  if (__syncthreads_or(poisoned)) {
    for (int k = thread; k < K; k += threads) {
      idx[k] = -1;
      prob[k] = NAN;
    }
    if (thread == 0 && lse != nullptr) lse[row] = NAN;
    return;
  }
  for (int k = thread; k < K; k += threads) {
    const Entry entry = entries[k];
    // The difference first: x / T - lse would round twice at the size of lse.
    const float logp = masked_row ? -INFINITY : (entry.value - all.max) / p.temperature - log_sum;
    idx[k] = k < p.V ? entry.column : -1;
    prob[k] = logarithm ? logp : expf(logp);
  }
  if (thread == 0 && lse != nullptr) {
    lse[row] = masked_row ? -INFINITY : all.max / p.temperature + log_sum;
  }
}

bool valid(const stk_params* p, const void* logits, const std::int32_t* idx, const float* prob) {
  if (p == nullptr || p->size != sizeof(stk_params)) return false;
  if (p->rows < 0 || p->V < 0 || p->ld < p->V || p->K < 0) return false;
  if (!(p->temperature > 0) || !(p->temperature < INFINITY)) return false;
  if (p->rows * p->V > 0 && logits == nullptr) return false;
  return p->rows * p->K == 0 || (idx != nullptr && prob != nullptr);
}

int run(assay_ctx* ctx, const stk_params* p, const void* logits, bool logarithm, std::int32_t* idx,
        float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  if (p->K > kMaxK || p->V > INT_MAX) return ASSAY_ENOTSUP;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16) return ASSAY_ENOTSUP;
  if (p->rows == 0) return ASSAY_OK;
  const auto stream = static_cast<cudaStream_t>(ctx->stream);
  const auto rows = static_cast<unsigned>(p->rows);
  const int threads = p->V <= 512 ? 64 : kMaxThreads;
  if (p->dtype == ASSAY_F32) {
    one_row<<<rows, threads, 0, stream>>>(*p, static_cast<const float*>(logits), logarithm, idx,
                                          prob, lse);
  } else {
    one_row<<<rows, threads, 0, stream>>>(*p, static_cast<const __nv_bfloat16*>(logits), logarithm,
                                          idx, prob, lse);
  }
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  return run(ctx, p, logits, false, idx, prob, lse);
}

extern "C" int log_softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                                std::int32_t* idx, float* logprob, float* lse) {
  return run(ctx, p, logits, true, idx, logprob, lse);
}
