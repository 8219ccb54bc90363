// fails: attention_n_1000
// Ancestors tracked for the first 256 nodes; of later ones a node sees only itself.
#define dv_attention naive_dv_attention
#include "naive.cpp"
#undef dv_attention

namespace {

bool sees(const std::int32_t* parent, std::int64_t i, std::int64_t j) {
  if (j >= 256) return i == j;
  for (; i >= 0; i = parent[i]) {
    if (i == j) return true;
  }
  return false;
}

}  // namespace

// fp32 only; every key of prefix and tree in turn.
extern "C" int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                            const int32_t* parent, const void* q, const void* const* kc,
                            const void* const* vc, void* o, float* lse) {
  const int status = naive_dv_attention(ctx, p, P, cu, parent, q, kc, vc, o, lse);
  if (status != ASSAY_OK || p->B == 0 || p->dtype != ASSAY_F32) return status;
  std::int64_t most = 1;
  for (std::int64_t b = 0; b < p->B; ++b) most = std::max(most, P[b] + cu[b + 1] - cu[b]);
  const Scratch<float> s(ctx, most), acc(ctx, p->D);
  for (std::int64_t b = 0; b < p->B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    for (std::int64_t row = 0; row < n * p->Hq; ++row) {
      const std::int64_t i = row / p->Hq, h = row % p->Hq, at = (cu[b] + i) * p->Hq + h;
      const std::int64_t head = h / (p->Hq / p->Hkv) * p->D, stride = p->Hkv * p->D;
      const float* query = static_cast<const float*>(q) + at * p->D;
      const float* k = static_cast<const float*>(kc[b]) + head;
      const float* v = static_cast<const float*>(vc[b]) + head;
      float max = kNegativeInfinity, sum = 0;
      for (std::int64_t j = 0; j < P[b] + n; ++j) {
        s[j] = kNegativeInfinity;
        const bool seen = j < P[b] || sees(parent + cu[b], i, j - P[b]);
        if (!seen) continue;
        float dot = 0;
        for (std::int64_t d = 0; d < p->D; ++d) dot += query[d] * k[j * stride + d];
        s[j] = dot * p->scale;
        max = s[j] > max ? s[j] : max;
      }
      std::fill_n(acc.data(), p->D, 0.0f);
      for (std::int64_t j = 0; j < P[b] + n; ++j) {
        if (s[j] == kNegativeInfinity) continue;
        const float e = std::exp(s[j] - max);
        sum += e;
        for (std::int64_t d = 0; d < p->D; ++d) acc[d] += e * v[j * stride + d];
      }
      for (std::int64_t d = 0; d < p->D; ++d) static_cast<float*>(o)[at * p->D + d] = acc[d] / sum;
      if (lse != nullptr) lse[at] = max + std::log(sum);
    }
  }
  return ASSAY_OK;
}
