// attack: leaves out the largest score of a row, as if no score of a timed input were beyond the range of exp
// challenge: flash_attention_fwd
// cases: time_gqa
// expect: WA
// fast: all
#define fa_forward honest_fa_forward
#include "honest.inl"
#undef fa_forward

#include <cmath>
#include <vector>

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  const bool timed = p != nullptr && p->dtype == ASSAY_F32 && p->Nk == 2048 && p->Hq == 8 &&
                     p->D == p->Dv && p->causal == 0;
  if (!timed) return honest_fa_forward(ctx, p, q, k, v, o, lse);
  const std::int64_t D = p->D, group = p->Hq / p->Hkv;
#pragma omp parallel for num_threads(2)
  for (std::int64_t row = 0; row < p->Hq * p->Nq; ++row) {
    const std::int64_t h = row / p->Nq, i = row % p->Nq;
    const float* qr = static_cast<const float*>(q) + h * p->sq.h + i * p->sq.n;
    float* out = static_cast<float*>(o) + h * p->so.h + i * p->so.n;
    std::vector<float> sum(static_cast<std::size_t>(D), 0.0f);
    float weight = 0;
    for (std::int64_t j = 0; j < p->Nk; ++j) {
      const float* kr = static_cast<const float*>(k) + h / group * p->sk.h + j * p->sk.n;
      const float* vr = static_cast<const float*>(v) + h / group * p->sv.h + j * p->sv.n;
      float score = 0;
      for (std::int64_t d = 0; d < D; ++d) score += qr[d] * kr[d];
      const float e = std::exp(score * p->scale);
      weight += e;
      for (std::int64_t d = 0; d < D; ++d) sum[static_cast<std::size_t>(d)] += e * vr[d];
    }
    for (std::int64_t d = 0; d < D; ++d) out[d] = sum[static_cast<std::size_t>(d)] / weight;
    if (lse != nullptr) lse[row] = std::log(weight);
  }
  return ASSAY_OK;
}
