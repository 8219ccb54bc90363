// Flash attention forward for D = 64 in its plainest form: each thread has one query and its output
// in registers. Keys and values pass through shared memory in tiles that all threads of the block
// read together. Rows begin on 16 bytes. For sim_against_cpp.
#include <cmath>

#include "abi.h"

namespace {

constexpr int kD = 64, kTile = 32;
constexpr int kGroup = 8;  // keys between two corrections of the output for a larger maximum

// Row r of the tile is row r of the array; rows from `rows` on are zero.
__device__ void load_tile(float4 (*tile)[kD / 4], const float* data, int64_t step, int64_t rows) {
#pragma unroll 4
  for (int at = threadIdx.x; at < kTile * kD / 4; at += kTile) {
    const int r = at / (kD / 4), d = at % (kD / 4);
    tile[r][d] = r < rows ? reinterpret_cast<const float4*>(data + r * step)[d] : float4{};
  }
}

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

  float query[kD], out[kD] = {}, maximum = -INFINITY, sum = 0;
#pragma unroll
  for (int d = 0; d < kD; ++d) query[d] = q[d] * p.scale;
  for (int64_t tile = 0; tile < end; tile += kTile) {
    __syncthreads();
    load_tile(keys, k + tile * p.sk.n, p.sk.n, p.Nk - tile);
    load_tile(values, v + tile * p.sv.n, p.sv.n, p.Nk - tile);
    __syncthreads();
    const int count = int(max(int64_t{0}, min(int64_t{kTile}, seen - tile)));
    for (int r = 0; r < count; r += kGroup) {
      float weight[kGroup], larger = maximum;
#pragma unroll
      for (int g = 0; g < kGroup; ++g) {
        float score = 0;
#pragma unroll
        for (int d = 0; d < kD / 4; ++d) {
          const float4 key = keys[r + g][d];
          score = fmaf(query[4 * d], key.x, score);
          score = fmaf(query[4 * d + 1], key.y, score);
          score = fmaf(query[4 * d + 2], key.z, score);
          score = fmaf(query[4 * d + 3], key.w, score);
        }
        weight[g] = r + g < count ? score : -INFINITY;
        larger = fmaxf(larger, weight[g]);
      }
      const float base = larger == -INFINITY ? 0 : larger, keep = expf(maximum - base);
      maximum = larger;
      sum *= keep;
#pragma unroll
      for (int d = 0; d < kD; ++d) out[d] *= keep;
#pragma unroll
      for (int g = 0; g < kGroup; ++g) {
        weight[g] = expf(weight[g] - base);
        sum += weight[g];
        if (r + g >= count) break;
#pragma unroll
        for (int d = 0; d < kD / 4; ++d) {
          const float4 value = values[r + g][d];
          out[4 * d] += weight[g] * value.x;
          out[4 * d + 1] += weight[g] * value.y;
          out[4 * d + 2] += weight[g] * value.z;
          out[4 * d + 3] += weight[g] * value.w;
        }
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
