// Flash attention forward for D = 64 in its plainest form: a thread has one query and its output in registers, keys and
// values pass through shared memory in tiles that all threads of the block read together. For sim_against_cpp.
#include <cmath>

#include "abi.h"

namespace {

constexpr int kD = 64, kTile = 32;

__global__ void __launch_bounds__(kTile)
    attend(fa_params p, const float* q, const float* k, const float* v, float* o, float* lse) {
  __shared__ float4 keys[kTile][kD / 4], values[kTile][kD / 4];
  const int64_t b = blockIdx.x / p.Hq, h = blockIdx.x % p.Hq, kv = h / (p.Hq / p.Hkv);
  const int64_t first = int64_t(blockIdx.y) * kTile, i = first + threadIdx.x;
  const int64_t seen = i >= p.Nq ? 0 : p.causal != 0 ? min(p.Nk, i + 1 + p.Nk - p.Nq) : p.Nk;
  const int64_t last = min(first + kTile, p.Nq) - 1;
  const int64_t end = p.causal != 0 ? min(p.Nk, last + 1 + p.Nk - p.Nq) : p.Nk;
  q += b * p.sq.b + h * p.sq.h + min(i, p.Nq - 1) * p.sq.n;
  k += b * p.sk.b + kv * p.sk.h;
  v += b * p.sv.b + kv * p.sv.h;

  float query[kD], out[kD], maximum = -INFINITY, sum = 0;
  for (int d = 0; d < kD; ++d) query[d] = q[d] * p.scale, out[d] = 0;
  for (int64_t tile = 0; tile < end; tile += kTile) {
    __syncthreads();
    for (int r = 0; r < kTile; ++r) {
      const bool there = tile + r < p.Nk;
      for (int d = threadIdx.x; d < kD; d += kTile) {
        reinterpret_cast<float*>(keys[r])[d] = there ? k[(tile + r) * p.sk.n + d] : 0;
        reinterpret_cast<float*>(values[r])[d] = there ? v[(tile + r) * p.sv.n + d] : 0;
      }
    }
    __syncthreads();
    for (int r = 0; r < kTile && tile + r < seen; ++r) {
      float score = 0;
#pragma unroll
      for (int d = 0; d < kD / 4; ++d) {
        const float4 key = keys[r][d];
        score += query[4 * d] * key.x + query[4 * d + 1] * key.y + query[4 * d + 2] * key.z +
                 query[4 * d + 3] * key.w;
      }
      const float larger = fmaxf(maximum, score);
      if (larger == -INFINITY) continue;  // nothing above -inf yet
      const float keep = expf(maximum - larger), weight = expf(score - larger);
      sum = sum * keep + weight;
      maximum = larger;
#pragma unroll
      for (int d = 0; d < kD / 4; ++d) {
        const float4 value = values[r][d];
        out[4 * d] = out[4 * d] * keep + weight * value.x;
        out[4 * d + 1] = out[4 * d + 1] * keep + weight * value.y;
        out[4 * d + 2] = out[4 * d + 2] * keep + weight * value.z;
        out[4 * d + 3] = out[4 * d + 3] * keep + weight * value.w;
      }
    }
  }
  if (i >= p.Nq) return;
  o += b * p.so.b + h * p.so.h + i * p.so.n;
  for (int d = 0; d < kD; ++d) o[d] = sum > 0 ? out[d] / sum : 0;
  if (lse != nullptr) lse[(b * p.Hq + h) * p.Nq + i] = sum > 0 ? maximum + logf(sum) : -INFINITY;
}

}  // namespace

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  if (p->dtype != ASSAY_F32 || p->D != kD || p->Dv != kD || p->window > 0) return ASSAY_ENOTSUP;
  const dim3 grid(unsigned(p->B * p->Hq), unsigned((p->Nq + kTile - 1) / kTile));
  attend<<<grid, kTile, 0, static_cast<cudaStream_t>(ctx->stream)>>>(
      *p, static_cast<const float*>(q), static_cast<const float*>(k), static_cast<const float*>(v),
      static_cast<float*>(o), lse);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
