// fails: ancestors_all attention_deep_256
// A node sees itself and its parent; the grandparents are forgotten.
#define dv_attention naive_dv_attention
#include "naive.cpp"
#undef dv_attention

#include <vector>

namespace {

// Attention of the plain kind over the prefix and the nodes up to `last`, those that `sees` leaves.
template <class Sees>
int masked_attention(const fa_params* p, const int64_t* P, const int64_t* cu, const void* q,
                     const void* const* kc, const void* const* vc, void* o, float* lse,
                     bool additive, Sees sees) {
  for (std::int64_t b = 0; b < p->B; ++b) {
    const auto* k = static_cast<const float*>(kc[b]);
    const auto* v = static_cast<const float*>(vc[b]);
    const std::int64_t n = cu[b + 1] - cu[b], width = p->Hkv * p->D;
    std::vector<float> s(static_cast<std::size_t>(P[b] + n));
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t h = 0; h < p->Hq; ++h) {
        const std::int64_t at = ((cu[b] + i) * p->Hq + h) * p->D,
                           head = h / (p->Hq / p->Hkv) * p->D;
        const float* query = static_cast<const float*>(q) + at;
        float max = kNegativeInfinity, sum = 0;
        for (std::int64_t j = 0; j < P[b] + n; ++j) {
          const bool visible = j < P[b] || sees(b, i, j - P[b]);
          float dot = 0;
          for (std::int64_t d = 0; d < p->D; ++d) dot += query[d] * k[j * width + head + d];
          const float score = dot * p->scale;
          s[static_cast<std::size_t>(j)] = visible    ? score
                                           : additive ? score - 1e9f
                                                      : kNegativeInfinity;
          max = std::max(max, s[static_cast<std::size_t>(j)]);
        }
        std::vector<double> acc(static_cast<std::size_t>(p->D));
        for (std::int64_t j = 0; j < P[b] + n; ++j) {
          const float w = std::exp(s[static_cast<std::size_t>(j)] - max);
          sum += w;
          for (std::int64_t d = 0; d < p->D && (w != 0 || additive); ++d)
            acc[static_cast<std::size_t>(d)] += static_cast<double>(w) * v[j * width + head + d];
        }
        for (std::int64_t d = 0; d < p->D; ++d)
          static_cast<float*>(o)[at + d] =
              static_cast<float>(acc[static_cast<std::size_t>(d)] / sum);
        if (lse != nullptr) lse[(cu[b] + i) * p->Hq + h] = max + std::log(sum);
      }
    }
  }
  return ASSAY_OK;
}

}  // namespace

extern "C" int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                            const int32_t* parent, const void* q, const void* const* kc,
                            const void* const* vc, void* o, float* lse) {
  const int status = naive_dv_attention(ctx, p, P, cu, parent, q, kc, vc, o, lse);
  if (status != ASSAY_OK || p->dtype != ASSAY_F32 || p->B == 0) return status;
  return masked_attention(p, P, cu, q, kc, vc, o, lse, false,
                          [&](std::int64_t b, std::int64_t i, std::int64_t j) {
                            return j == i || j == parent[cu[b] + i];
                          });
}
