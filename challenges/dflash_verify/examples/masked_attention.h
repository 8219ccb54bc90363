// For examples whose dv_attention computes every pair of a node and a key and leaves out what a
// mask hides. The right implementation runs first: it checks the arguments, and its outputs stay
// where the elements are not fp32.
#pragma once

#define dv_attention naive_dv_attention
#include "naive.cpp"
#undef dv_attention

namespace {

// The right mask; mistakes replace parts of it.
struct Mask {
  // Whether node i of a tree sees node j.
  static bool sees(const std::int32_t* parent, std::int64_t i, std::int64_t j) {
    for (; i >= 0; i = parent[i]) {
      if (i == j) return true;
    }
    return false;
  }
  // Hidden scores keep their place in the sums, with what `hidden` makes of them, instead of being
  // left out.
  static constexpr bool kAdditive = false;
  static float hidden(float score) { return score - 1e9f; }
};

// The keys and values of one item for one query head.
struct Keys {
  const float *k, *v;
  const std::int32_t* parent;
  std::int64_t P, n, D, stride;
  float scale;
};

// One row for one query head; s and acc have room for all scores and a value. Returns the
// log-sum-exp.
template <class Bug>
float masked_row(const Keys& keys, std::int64_t i, const float* query, float* s, float* acc,
                 float* o) {
  const std::int64_t P = keys.P, D = keys.D, all = P + keys.n;
  float max = kNegativeInfinity, sum = 0;
  for (std::int64_t j = 0; j < all; ++j) {
    s[j] = kNegativeInfinity;
    const bool seen = j < P || Bug::sees(keys.parent, i, j - P);
    if (!seen && !Bug::kAdditive) continue;
    float dot = 0;
    for (std::int64_t d = 0; d < D; ++d) dot += query[d] * keys.k[j * keys.stride + d];
    s[j] = seen ? dot * keys.scale : Bug::hidden(dot * keys.scale);
    max = s[j] > max ? s[j] : max;
  }
  std::fill_n(acc, D, 0.0f);
  for (std::int64_t j = 0; j < all; ++j) {
    if (s[j] == kNegativeInfinity && !Bug::kAdditive) continue;
    const float e = std::exp(s[j] - max);
    sum += e;
    for (std::int64_t d = 0; d < D; ++d) acc[d] += e * keys.v[j * keys.stride + d];
  }
  for (std::int64_t d = 0; d < D; ++d) o[d] = acc[d] / sum;
  return max + std::log(sum);
}

template <class Bug>
int masked_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                     const int32_t* parent, const void* q, const void* const* kc,
                     const void* const* vc, void* o, float* lse) {
  const auto right = [&] { return naive_dv_attention(ctx, p, P, cu, parent, q, kc, vc, o, lse); };
  if (p == nullptr || p->B < 1 || p->B > INT32_MAX || p->dtype != ASSAY_F32) return right();
  const auto B = static_cast<std::int32_t>(p->B);
  if (!valid_trees(B, cu, parent) || !valid_prefixes(B, P)) return right();
  std::int64_t most = 1;
  for (std::int32_t b = 0; b < B; ++b) most = std::max(most, P[b] + cu[b + 1] - cu[b]);
  // Before anything is written: a call that fails leaves its outputs as they were.
  const Scratch<float> s(ctx, most), acc(ctx, p->D);
  if (s.failed() || acc.failed()) return ASSAY_ENOMEM;
  if (const int status = right(); status != ASSAY_OK) return status;
  for (std::int64_t b = 0; b < p->B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    for (std::int64_t row = 0; row < n * p->Hq; ++row) {
      const std::int64_t h = row % p->Hq, head = h / (p->Hq / p->Hkv) * p->D;
      const std::int64_t at = cu[b] * p->Hq + row;
      const Keys keys{static_cast<const float*>(kc[b]) + head,
                      static_cast<const float*>(vc[b]) + head,
                      parent + cu[b],
                      P[b],
                      n,
                      p->D,
                      p->Hkv * p->D,
                      p->scale};
      const float l = masked_row<Bug>(keys, row / p->Hq, static_cast<const float*>(q) + at * p->D,
                                      s.data(), acc.data(), static_cast<float*>(o) + at * p->D);
      if (lse != nullptr) lse[at] = l;
    }
  }
  return ASSAY_OK;
}

}  // namespace

// At the end of the file.
#define ATTEND_WITH(Bug)                                                                           \
  extern "C" int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P,                \
                              const int64_t* cu, const int32_t* parent, const void* q,             \
                              const void* const* kc, const void* const* vc, void* o, float* lse) { \
    return masked_attention<Bug>(ctx, p, P, cu, parent, q, kc, vc, o, lse);                        \
  }
