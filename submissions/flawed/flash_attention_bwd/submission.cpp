// Sample entrant of assay, not a model's answer: plausible code with bugs that real answers had.
//   1. delta is summed from P dP over the keys of the tile at hand: right only while all keys fit
//   in one tile.
//   2. No guard for rows without keys: causally masked scores of -inf meet lse of -inf, and are
//   multiplied by
//      masked values, NaN included.
//   3. dk and dv of a key head are overwritten by each query head of its group: the last one wins.
//   4. Causality is aligned to the top left corner.
//   5. Arrays are taken for contiguous; the strides are ignored.
//   6. Only two of the pointers are checked for NULL.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "abi.h"

namespace {

constexpr std::int64_t kTile = 128;

// Matrices of one query head.
struct Head {
  const float *dout, *q, *k, *v, *lse;
  float *dq, *dk, *dv;
};

float dot(const float* a, const float* b, std::int64_t n) {
  float sum = 0;
  for (std::int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
  return sum;
}

void tile(const fa_params& p, const Head& a, std::int64_t i, std::int64_t j, std::int64_t n) {
  const float *q = a.q + i * p.D, *dout = a.dout + i * p.Dv;
  float w[kTile], dp[kTile], delta = 0;
  for (std::int64_t c = 0; c < n; ++c) {
    float s = dot(q, a.k + (j + c) * p.D, p.D) * p.scale;
    if (p.causal != 0 && j + c > i) s = -std::numeric_limits<float>::infinity();
    w[c] = std::exp(s - a.lse[i]);
    dp[c] = dot(dout, a.v + (j + c) * p.Dv, p.Dv);
    delta += w[c] * dp[c];
  }
  for (std::int64_t c = 0; c < n; ++c) {
    const float ds = w[c] * (dp[c] - delta) * p.scale;
    for (std::int64_t d = 0; d < p.Dv; ++d) a.dv[(j + c) * p.Dv + d] += w[c] * dout[d];
    for (std::int64_t d = 0; d < p.D; ++d) {
      a.dk[(j + c) * p.D + d] += ds * q[d];
      a.dq[i * p.D + d] += ds * a.k[(j + c) * p.D + d];
    }
  }
}

void run(const fa_params& p, const Head& a) {
  std::fill_n(a.dq, p.Nq * p.D, 0.0f);
  std::fill_n(a.dk, p.Nk * p.D, 0.0f);
  std::fill_n(a.dv, p.Nk * p.Dv, 0.0f);
  for (std::int64_t i = 0; i < p.Nq; ++i) {
    for (std::int64_t j = 0; j < p.Nk; j += kTile) tile(p, a, i, j, std::min(kTile, p.Nk - j));
  }
}

}  // namespace

extern "C" int fa_backward(assay_ctx*, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void*, const float* lse, void* dq,
                           void* dk, void* dv) {
  if (p->B < 0 || p->Hq < 0 || p->Nq < 0 || p->Nk < 0) return ASSAY_EINVAL;
  if (p->Hkv <= 0 || p->Hq % p->Hkv != 0) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 || p->window > 0) return ASSAY_ENOTSUP;
  if (p->B * p->Hq * p->Nq > 0 && (q == nullptr || dout == nullptr)) return ASSAY_EINVAL;
  const auto in = [](const void* x, std::int64_t at) { return static_cast<const float*>(x) + at; };
  const auto out = [](void* x, std::int64_t at) { return static_cast<float*>(x) + at; };
  for (std::int64_t h = 0; h < p->B * p->Hq; ++h) {
    const std::int64_t rows = h * p->Nq, keys = h / (p->Hq / p->Hkv) * p->Nk;
    run(*p, {in(dout, rows * p->Dv), in(q, rows * p->D), in(k, keys * p->D), in(v, keys * p->Dv),
             in(lse, rows), out(dq, rows * p->D), out(dk, keys * p->D), out(dv, keys * p->Dv)});
  }
  return ASSAY_OK;
}
