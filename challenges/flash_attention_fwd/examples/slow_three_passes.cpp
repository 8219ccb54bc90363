// slow: time_1024
// Right but slow: the scores are computed again for the maximum, for the sum and for the values.
#define fa_forward naive_fa_forward
#include "naive.cpp"
#undef fa_forward

namespace {

float dot(const float* a, const float* b, std::int64_t D) {
  float sum = 0;
  for (std::int64_t d = 0; d < D; ++d) sum += a[d] * b[d];
  return sum;
}

void row(const fa_params& p, const float* q, const float* k, const float* v, std::int64_t end,
         float* o, float* lse) {
  float max = -kInf, sum = 0;
  for (std::int64_t j = 0; j < end; ++j) max = std::max(max, p.scale * dot(q, k + j * p.sk.n, p.D));
  for (std::int64_t j = 0; j < end; ++j)
    sum += std::exp(p.scale * dot(q, k + j * p.sk.n, p.D) - max);
  std::fill(o, o + p.Dv, 0.0f);
  for (std::int64_t j = 0; j < end; ++j) {
    const float w = std::exp(p.scale * dot(q, k + j * p.sk.n, p.D) - max) / sum;
    for (std::int64_t d = 0; d < p.Dv; ++d) o[d] += w * v[j * p.sv.n + d];
  }
  if (lse != nullptr) *lse = max + std::log(sum);
}

}  // namespace

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  const bool plain = valid(p, q, k, v, o) && p->dtype == ASSAY_F32 && p->window <= 0 &&
                     p->Nk >= p->Nq && p->Nk > 256;
  if (!plain) return naive_fa_forward(ctx, p, q, k, v, o, lse);
  for (std::int64_t r = 0; r < p->B * p->Hq * p->Nq; ++r) {
    const std::int64_t b = r / (p->Hq * p->Nq), h = r / p->Nq % p->Hq, i = r % p->Nq,
                       kv = h / (p->Hq / p->Hkv);
    row(*p, static_cast<const float*>(q) + b * p->sq.b + h * p->sq.h + i * p->sq.n,
        static_cast<const float*>(k) + b * p->sk.b + kv * p->sk.h,
        static_cast<const float*>(v) + b * p->sv.b + kv * p->sv.h,
        p->causal != 0 ? i + p->Nk - p->Nq + 1 : p->Nk,
        static_cast<float*>(o) + b * p->so.b + h * p->so.h + i * p->so.n,
        lse != nullptr ? lse + r : nullptr);
  }
  return ASSAY_OK;
}
