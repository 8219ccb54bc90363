// The plain CUDA implementation: a thread for each query, two passes over its keys. fp32, D = Dv up
// to 128, no window, no optional function.
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kThreads = 64, kMaxD = 128;

__device__ float score(const fa_params& p, const float* query, const float* key) {
  float dot = 0;
  for (std::int64_t d = 0; d < p.D; ++d) dot += query[d] * key[d];
  return dot * p.scale;
}

__global__ void attend(fa_params p, const float* q, const float* k, const float* v, float* o,
                       float* lse) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= p.B * p.Hq * p.Nq) return;
  const std::int64_t i = row % p.Nq, h = row / p.Nq % p.Hq, b = row / p.Nq / p.Hq;
  const std::int64_t kv = h / (p.Hq / p.Hkv);
  q += b * p.sq.b + h * p.sq.h + i * p.sq.n;
  k += b * p.sk.b + kv * p.sk.h;
  v += b * p.sv.b + kv * p.sv.h;
  o += b * p.so.b + h * p.so.h + i * p.so.n;
  const std::int64_t end = p.causal != 0 ? min(p.Nk, i + p.Nk - p.Nq + 1) : p.Nk;

  float max = -INFINITY, sum = 0, output[kMaxD];
  for (std::int64_t j = 0; j < end; ++j) max = fmaxf(max, score(p, q, k + j * p.sk.n));
  for (std::int64_t d = 0; d < p.D; ++d) output[d] = 0;
  for (std::int64_t j = 0; j < end; ++j) {
    const float weight = expf(score(p, q, k + j * p.sk.n) - max);
    sum += weight;
    for (std::int64_t d = 0; d < p.D; ++d) output[d] += weight * v[j * p.sv.n + d];
  }
  for (std::int64_t d = 0; d < p.D; ++d) o[d] = end > 0 ? output[d] / sum : 0.0f;
  if (lse != nullptr) lse[row] = end > 0 ? max + logf(sum) : -INFINITY;
}

bool valid(const fa_params* p, const void* q, const void* k, const void* v, const void* o) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0)
    return false;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const std::int64_t queries = p->B * p->Hq * p->Nq, keys = p->B * p->Hkv * p->Nk;
  return (q != nullptr || queries * p->D == 0) && (k != nullptr || keys * p->D == 0) &&
         (v != nullptr || keys * p->Dv == 0) && (o != nullptr || queries * p->Dv == 0);
}

}  // namespace

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 || p->D != p->Dv || p->D > kMaxD || p->window > 0) return ASSAY_ENOTSUP;
  const std::int64_t rows = p->B * p->Hq * p->Nq;
  if (rows == 0) return ASSAY_OK;
  attend<<<static_cast<unsigned>((rows + kThreads - 1) / kThreads), kThreads, 0,
           static_cast<cudaStream_t>(ctx->stream)>>>(
      *p, static_cast<const float*>(q), static_cast<const float*>(k), static_cast<const float*>(v),
      static_cast<float*>(o), lse);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
