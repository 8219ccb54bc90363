// Sample entrant of assay, not a model's answer: plausible code with bugs that real answers had.
//   1. Causality is aligned to the top left corner: query i sees keys up to i, whatever Nq and Nk.
//   2. Query head h reads key head h % Hkv: interleaved instead of blocked groups.
//   3. Rows without keys divide 0 by 0: neither the maximum of -inf nor the sum of 0 is guarded.
//   4. Scores are divided by sqrt(D), whatever scale says.
//   5. Arrays are taken for contiguous; the strides are ignored.
//   6. Only two of the pointers are checked for NULL.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "abi.h"

namespace {

constexpr std::int64_t kTile = 64;

void attend(const fa_params& p, std::int64_t i, const float* q, const float* k, const float* v,
            float* o, float* lse) {
  const float scale = 1 / std::sqrt(static_cast<float>(p.D));
  const std::int64_t end = p.causal != 0 ? std::min(p.Nk, i + 1) : p.Nk;
  float max = -std::numeric_limits<float>::infinity(), sum = 0;
  std::fill_n(o, p.Dv, 0.0f);
  for (std::int64_t j = 0; j < end; j += kTile) {
    const std::int64_t n = std::min(kTile, end - j);
    float s[kTile], now = max;
    for (std::int64_t c = 0; c < n; ++c) {
      s[c] = 0;
      for (std::int64_t d = 0; d < p.D; ++d) s[c] += q[d] * k[(j + c) * p.D + d];
      s[c] *= scale;
      now = std::max(now, s[c]);
    }
    const float keep = std::exp(max - now);
    max = now;
    sum *= keep;
    for (std::int64_t d = 0; d < p.Dv; ++d) o[d] *= keep;
    for (std::int64_t c = 0; c < n; ++c) {
      const float w = std::exp(s[c] - max);
      sum += w;
      for (std::int64_t d = 0; d < p.Dv; ++d) o[d] += w * v[(j + c) * p.Dv + d];
    }
  }
  for (std::int64_t d = 0; d < p.Dv; ++d) o[d] /= sum;
  if (lse != nullptr) *lse = max + std::log(sum);
}

}  // namespace

extern "C" int fa_forward(assay_ctx*, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  if (p->B < 0 || p->Hq < 0 || p->Nq < 0 || p->Nk < 0) return ASSAY_EINVAL;
  if (p->Hkv <= 0 || p->Hq % p->Hkv != 0) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 || p->window > 0) return ASSAY_ENOTSUP;
  if (p->B * p->Hq * p->Nq > 0 && (q == nullptr || o == nullptr)) return ASSAY_EINVAL;
  for (std::int64_t b = 0; b < p->B; ++b) {
    for (std::int64_t h = 0; h < p->Hq; ++h) {
      const std::int64_t keys = (b * p->Hkv + h % p->Hkv) * p->Nk;
      for (std::int64_t i = 0; i < p->Nq; ++i) {
        const std::int64_t row = (b * p->Hq + h) * p->Nq + i;
        attend(*p, i, static_cast<const float*>(q) + row * p->D,
               static_cast<const float*>(k) + keys * p->D,
               static_cast<const float*>(v) + keys * p->Dv, static_cast<float*>(o) + row * p->Dv,
               lse != nullptr ? lse + row : nullptr);
      }
    }
  }
  return ASSAY_OK;
}
