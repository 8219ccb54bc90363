// Attention over tiles of 64 keys with an online softmax, as it is usually written, for the wrong
// examples: each replaces one step of Right by its mistake. What is not fp32 goes to naive.cpp.
#pragma once

#define fa_forward naive_fa_forward
#include "naive.cpp"
#undef fa_forward

#include <vector>

// One row's running state when a tile with maximum `tile` raises the maximum from `old` to `now`.
struct Step {
  float old, now, tile;
};

struct Right {
  static constexpr float kFirstMax = -kInf;
  static constexpr float kEmptyLse = -kInf;
  static constexpr bool kMaskedKeysTakePart = false;  // with scores of -1e9
  static float correction(Step s) { return s.old == -kInf ? 0.0f : std::exp(s.old - s.now); }
  static float sum_correction(Step s) { return correction(s); }
  static float weight(float s, float max) { return std::exp(s - max); }
  static float score(const fa_params& p, float dot) { return dot * p.scale; }
  static std::int64_t end(const fa_params& p, std::int64_t i) {
    return p.causal != 0 ? std::min(p.Nk, i + p.Nk - p.Nq + 1) : p.Nk;
  }
  // The matrix of an item and query head among all of q; the key matrix that it reads.
  static std::int64_t query_matrix(const fa_params& p, std::int64_t b, std::int64_t h) {
    return b * p.Hq + h;
  }
  static std::int64_t key_matrix(const fa_params& p, std::int64_t b, std::int64_t h) {
    return b * p.Hkv + h / (p.Hq / p.Hkv);
  }
  static std::int64_t at(const assay_stride& s, std::int64_t matrix, std::int64_t H, std::int64_t,
                         std::int64_t) {
    return matrix / H * s.b + matrix % H * s.h;
  }
  static std::int64_t row(const assay_stride& s, std::int64_t) { return s.n; }
  static float sum(float x) { return x; }  // how a running sum is stored
};

template <class Bug>
void tiled_row(const fa_params& p, std::int64_t b, std::int64_t h, std::int64_t i, const float* q,
               const float* k, const float* v, float* o, float* lse) {
  const std::int64_t queries = Bug::query_matrix(p, b, h), keys = Bug::key_matrix(p, b, h);
  q += Bug::at(p.sq, queries, p.Hq, p.Nq, p.D) + i * Bug::row(p.sq, p.D);
  k += Bug::at(p.sk, keys, p.Hkv, p.Nk, p.D);
  v += Bug::at(p.sv, keys, p.Hkv, p.Nk, p.Dv);
  o += Bug::at(p.so, queries, p.Hq, p.Nq, p.Dv) + i * Bug::row(p.so, p.Dv);
  const std::int64_t end = Bug::end(p, i), last = Bug::kMaskedKeysTakePart ? p.Nk : end;
  std::vector<float> sum_of(static_cast<std::size_t>(p.Dv), 0.0f);
  float max = Bug::kFirstMax, sum = 0;
  for (std::int64_t j = 0; j < last; j += 64) {
    const std::int64_t n = std::min<std::int64_t>(64, last - j);
    float s[64], tile = -kInf;
    for (std::int64_t c = 0; c < n; ++c) {
      float dot = 0;
      for (std::int64_t d = 0; d < p.D; ++d) dot += q[d] * k[(j + c) * Bug::row(p.sk, p.D) + d];
      s[c] = Bug::score(p, dot) + (j + c < end ? 0.0f : -1e9f);
      tile = std::max(tile, s[c]);
    }
    const Step step{max, std::max(max, tile), tile};
    max = step.now;
    sum *= Bug::sum_correction(step);
    for (float& x : sum_of) x *= Bug::correction(step);
    for (std::int64_t c = 0; c < n; ++c) {
      const float w = Bug::weight(s[c], max);
      sum = Bug::sum(sum + w);
      for (std::int64_t d = 0; d < p.Dv; ++d) {
        float& x = sum_of[static_cast<std::size_t>(d)];
        x = Bug::sum(x + w * v[(j + c) * Bug::row(p.sv, p.Dv) + d]);
      }
    }
  }
  for (std::int64_t d = 0; d < p.Dv; ++d)
    o[d] = end > 0 ? sum_of[static_cast<std::size_t>(d)] / sum : 0.0f;
  if (lse != nullptr)
    lse[(b * p.Hq + h) * p.Nq + i] = end > 0 ? max + std::log(sum) : Bug::kEmptyLse;
}

template <class Bug>
int tiled_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k, const void* v,
                  void* o, float* lse) {
  if (!valid(p, q, k, v, o) || p->dtype != ASSAY_F32 || p->window > 0)
    return naive_fa_forward(ctx, p, q, k, v, o, lse);
  for (std::int64_t b = 0; b < p->B; ++b) {
    for (std::int64_t h = 0; h < p->Hq; ++h) {
      for (std::int64_t i = 0; i < p->Nq; ++i) {
        tiled_row<Bug>(*p, b, h, i, static_cast<const float*>(q), static_cast<const float*>(k),
                       static_cast<const float*>(v), static_cast<float*>(o), lse);
      }
    }
  }
  return ASSAY_OK;
}

// Defines fa_forward with the mistake `Bug`.
#define TILED_FORWARD(Bug)                                                                    \
  extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k, \
                            const void* v, void* o, float* lse) {                             \
    return tiled_forward<Bug>(ctx, p, q, k, v, o, lse);                                       \
  }
