// The plain CUDA implementation: a thread for each row, three passes. The outputs hold the list of
// the best while it grows: prob their logits, idx their columns, best first, by insertion. fp32
// only, and no optional function.
#include <climits>
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kThreads = 64;

__global__ void one_row(stk_params p, const float* logits, std::int32_t* idx, float* prob,
                        float* lse) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= p.rows) return;
  const float* x = logits + row * p.ld;
  const std::int32_t K = p.K;
  idx += row * K;
  prob += row * K;

  float max = -INFINITY;
  bool poisoned = false;
  for (std::int64_t j = 0; j < p.V; ++j) {
    max = fmaxf(max, x[j]);
    poisoned = poisoned || !(x[j] < INFINITY);
  }
  if (poisoned) {
    for (std::int32_t k = 0; k < K; ++k) {
      idx[k] = -1;
      prob[k] = NAN;
    }
    if (lse != nullptr) lse[row] = NAN;
    return;
  }

  double sum = 0;
  for (std::int64_t j = 0; j < p.V; ++j) {
    if (x[j] > -INFINITY) sum += expf((x[j] - max) / p.temperature);
  }
  const auto log_sum = static_cast<float>(log(sum));
  if (lse != nullptr) lse[row] = sum > 0 ? max / p.temperature + log_sum : -INFINITY;

  // Columns come in ascending order, so that an equal logit never overtakes.
  std::int32_t n = 0;
  for (std::int64_t j = 0; K > 0 && j < p.V; ++j) {
    if (n == K && !(x[j] > prob[K - 1])) continue;
    std::int32_t k = n < K ? n++ : K - 1;
    for (; k > 0 && x[j] > prob[k - 1]; --k) {
      prob[k] = prob[k - 1];
      idx[k] = idx[k - 1];
    }
    prob[k] = x[j];
    idx[k] = static_cast<std::int32_t>(j);
  }
  for (std::int32_t k = 0; k < K; ++k) {
    const bool masked = k >= n || prob[k] == -INFINITY;
    // The difference first: x / T - lse would round twice at the size of lse.
    prob[k] = masked ? 0.0f : expf((prob[k] - max) / p.temperature - log_sum);
    if (k >= n) idx[k] = -1;
  }
}

bool valid(const stk_params* p, const void* logits, const std::int32_t* idx, const float* prob) {
  if (p == nullptr || p->size != sizeof(stk_params)) return false;
  if (p->rows < 0 || p->V < 0 || p->ld < p->V || p->K < 0) return false;
  if (!(p->temperature > 0) || !(p->temperature < INFINITY)) return false;
  if (p->rows * p->V > 0 && logits == nullptr) return false;
  return p->rows * p->K == 0 || (idx != nullptr && prob != nullptr);
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  if (!valid(p, logits, idx, prob)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 || p->V > INT_MAX) return ASSAY_ENOTSUP;
  if (p->rows == 0) return ASSAY_OK;
  const auto blocks = static_cast<unsigned>((p->rows + kThreads - 1) / kThreads);
  one_row<<<blocks, kThreads, 0, static_cast<cudaStream_t>(ctx->stream)>>>(
      *p, static_cast<const float*>(logits), idx, prob, lse);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
