// The plain CUDA implementation: a thread for each query, for dq, and a thread for each key, for dk
// and dv; every pair is computed in both. fp32, D = Dv up to 128, no window, no optional function.
#include <cstdint>

#include "abi.h"

namespace {

constexpr int kThreads = 64, kMaxD = 128;

struct Arrays {
  const float *dout, *q, *k, *v, *o, *lse;
  float *dq, *dk, *dv;
};

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
  for (std::int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
  return sum;
}

__device__ bool sees(const fa_params& p, std::int64_t i, std::int64_t j) {
  return p.causal == 0 || j <= i + p.Nk - p.Nq;
}

__global__ void query_gradient(fa_params p, Arrays a) {
  const std::int64_t row = thread_index();
  if (row >= p.B * p.Hq * p.Nq) return;
  const std::int64_t i = row % p.Nq, h = row / p.Nq % p.Hq, b = row / p.Nq / p.Hq;
  const std::int64_t kv = h / (p.Hq / p.Hkv), out = b * p.so.b + h * p.so.h + i * p.so.n;
  const std::int64_t query = b * p.sq.b + h * p.sq.h + i * p.sq.n;
  const float delta = dot(a.dout + out, a.o + out, p.Dv);
  float dq[kMaxD];
  for (std::int64_t d = 0; d < p.D; ++d) dq[d] = 0;
  for (std::int64_t j = 0; j < p.Nk; ++j) {
    if (!sees(p, i, j)) break;
    const float* k = a.k + b * p.sk.b + kv * p.sk.h + j * p.sk.n;
    const float* v = a.v + b * p.sv.b + kv * p.sv.h + j * p.sv.n;
    const float weight = expf(dot(a.q + query, k, p.D) * p.scale - a.lse[row]);
    const float ds = weight * (dot(a.dout + out, v, p.Dv) - delta) * p.scale;
    for (std::int64_t d = 0; d < p.D; ++d) dq[d] += ds * k[d];
  }
  for (std::int64_t d = 0; d < p.D; ++d) a.dq[query + d] = dq[d];
}

__global__ void key_gradient(fa_params p, Arrays a) {
  const std::int64_t row = thread_index();
  if (row >= p.B * p.Hkv * p.Nk) return;
  const std::int64_t j = row % p.Nk, kv = row / p.Nk % p.Hkv, b = row / p.Nk / p.Hkv;
  const std::int64_t group = p.Hq / p.Hkv;
  const std::int64_t key = b * p.sk.b + kv * p.sk.h + j * p.sk.n;
  const std::int64_t value = b * p.sv.b + kv * p.sv.h + j * p.sv.n;
  float dk[kMaxD], dv[kMaxD];
  for (std::int64_t d = 0; d < p.D; ++d) dk[d] = dv[d] = 0;
  for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
    for (std::int64_t i = 0; i < p.Nq; ++i) {
      if (!sees(p, i, j)) continue;
      const float* q = a.q + b * p.sq.b + h * p.sq.h + i * p.sq.n;
      const std::int64_t out = b * p.so.b + h * p.so.h + i * p.so.n;
      const float delta = dot(a.dout + out, a.o + out, p.Dv);
      const float weight =
          expf(dot(q, a.k + key, p.D) * p.scale - a.lse[(b * p.Hq + h) * p.Nq + i]);
      const float ds = weight * (dot(a.dout + out, a.v + value, p.Dv) - delta) * p.scale;
      for (std::int64_t d = 0; d < p.D; ++d) {
        dk[d] += ds * q[d];
        dv[d] += weight * a.dout[out + d];
      }
    }
  }
  for (std::int64_t d = 0; d < p.D; ++d) {
    a.dk[key + d] = dk[d];
    a.dv[value + d] = dv[d];
  }
}

unsigned blocks(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

}  // namespace

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0)
    return ASSAY_EINVAL;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return ASSAY_EINVAL;
  const std::int64_t queries = p->B * p->Hq * p->Nq, keys = p->B * p->Hkv * p->Nk;
  const auto missing = [](std::int64_t n, const void* x, const void* y) {
    return n > 0 && (x == nullptr || y == nullptr);
  };
  if (missing(queries * p->D, q, dq) || missing(keys * p->D, k, dk) ||
      missing(keys * p->Dv, v, dv) || missing(queries * p->Dv, dout, o) ||
      missing(queries, lse, lse)) {
    return ASSAY_EINVAL;
  }
  if (p->dtype != ASSAY_F32 || p->D != p->Dv || p->D > kMaxD || p->window > 0) return ASSAY_ENOTSUP;
  const auto in = [](const void* x) { return static_cast<const float*>(x); };
  const auto out = [](void* x) { return static_cast<float*>(x); };
  const Arrays a{in(dout), in(q), in(k), in(v), in(o), lse, out(dq), out(dk), out(dv)};
  const auto stream = static_cast<cudaStream_t>(ctx->stream);
  if (queries > 0) query_gradient<<<blocks(queries), kThreads, 0, stream>>>(*p, a);
  if (keys > 0) key_gradient<<<blocks(keys), kThreads, 0, stream>>>(*p, a);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
