// The backward pass pair by pair, fp32, as it is usually written, for the wrong examples: each
// replaces one step of Right by its mistake. What is not fp32 goes to naive.cpp.
#pragma once

#define fa_backward naive_fa_backward
#include "naive.cpp"
#undef fa_backward

#include <vector>

// One pair of query i and key j.
struct Pair {
  float s, lse, dp, delta, tile_delta, delta_of_key;
};

struct Right {
  static constexpr bool kMaskedKeysTakePart = false;  // with scores of -inf
  static constexpr bool kAddsToOutputs = false;       // instead of overwriting them
  static constexpr bool kOneHeadOfGroup = false;      // dk, dv of the last query head only
  static constexpr bool kContiguousDelta = false;     // o and dout as if they were, for delta
  static constexpr std::int64_t kForgetEvery = 1
                                               << 30;  // queries after which dk and dv start again
  static float score_scale(const fa_params& p) { return p.scale; }
  static float gradient_scale(const fa_params& p) { return p.scale; }
  static float weight(const Pair& x) { return std::exp(x.s - x.lse); }
  static float score_gradient(const Pair& x, float w) { return w * (x.dp - x.delta); }
  static float dout(float x) { return x; }
  static std::int64_t end(const fa_params& p, std::int64_t i) {
    return p.causal != 0 ? std::min(p.Nk, i + p.Nk - p.Nq + 1) : p.Nk;
  }
  static std::int64_t at(const assay_stride& s, std::int64_t matrix, std::int64_t H, std::int64_t,
                         std::int64_t) {
    return matrix / H * s.b + matrix % H * s.h;
  }
  static std::int64_t row(const assay_stride& s, std::int64_t) { return s.n; }
};

template <class Bug>
class Backward {
 public:
  Backward(const fa_params& p, const float* dout, const float* q, const float* k, const float* v,
           const float* o, const float* lse, float* dq, float* dk, float* dv)
      : p_(p), dout_(dout), q_(q), k_(k), v_(v), o_(o), lse_(lse), dq_(dq), dk_(dk), dv_(dv) {}

  void run() {
    for (std::int64_t matrix = 0; matrix < p_.B * p_.Hkv && !Bug::kAddsToOutputs; ++matrix)
      clear(matrix);
    for (std::int64_t b = 0; b < p_.B; ++b) {
      for (std::int64_t h = 0; h < p_.Hq; ++h)
        head(b * p_.Hq + h, b * p_.Hkv + h / (p_.Hq / p_.Hkv));
    }
  }

 private:
  template <class T>
  static T* matrix_of(T* data, const assay_stride& s, std::int64_t matrix, std::int64_t H,
                      std::int64_t N, std::int64_t D) {
    return data + Bug::at(s, matrix, H, N, D);
  }
  float* dk_row(std::int64_t matrix, std::int64_t j) {
    return matrix_of(dk_, p_.sk, matrix, p_.Hkv, p_.Nk, p_.D) + j * Bug::row(p_.sk, p_.D);
  }
  float* dv_row(std::int64_t matrix, std::int64_t j) {
    return matrix_of(dv_, p_.sv, matrix, p_.Hkv, p_.Nk, p_.Dv) + j * Bug::row(p_.sv, p_.Dv);
  }

  void clear(std::int64_t matrix) {
    for (std::int64_t j = 0; j < p_.Nk; ++j) {
      std::fill_n(dk_row(matrix, j), p_.D, 0.0f);
      std::fill_n(dv_row(matrix, j), p_.Dv, 0.0f);
    }
  }

  static float dot(const float* a, const float* b, std::int64_t n) {
    float sum = 0;
    for (std::int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
    return sum;
  }

  float delta_of(std::int64_t queries, std::int64_t i) const {
    if (i >= p_.Nq) return 0;
    const std::int64_t at = Bug::kContiguousDelta ? (queries * p_.Nq + i) * p_.Dv
                                                  : Bug::at(p_.so, queries, p_.Hq, p_.Nq, p_.Dv) +
                                                        i * Bug::row(p_.so, p_.Dv);
    return dot(dout_ + at, o_ + at, p_.Dv);
  }

  void head(std::int64_t queries, std::int64_t keys) {
    if (Bug::kOneHeadOfGroup) clear(keys);
    std::vector<float> delta;
    for (std::int64_t i = 0; i < std::max(p_.Nq, p_.Nk); ++i) delta.push_back(delta_of(queries, i));
    for (std::int64_t i = 0; i < p_.Nq; ++i) {
      if (i > 0 && i % Bug::kForgetEvery == 0) clear(keys);
      query(queries, keys, i, delta);
    }
  }

  void query(std::int64_t queries, std::int64_t keys, std::int64_t i,
             const std::vector<float>& delta) {
    const float* q = matrix_of(q_, p_.sq, queries, p_.Hq, p_.Nq, p_.D) + i * Bug::row(p_.sq, p_.D);
    const float* given =
        matrix_of(dout_, p_.so, queries, p_.Hq, p_.Nq, p_.Dv) + i * Bug::row(p_.so, p_.Dv);
    const float* k = matrix_of(k_, p_.sk, keys, p_.Hkv, p_.Nk, p_.D);
    const float* v = matrix_of(v_, p_.sv, keys, p_.Hkv, p_.Nk, p_.Dv);
    float* dq = matrix_of(dq_, p_.sq, queries, p_.Hq, p_.Nq, p_.D) + i * Bug::row(p_.sq, p_.D);
    std::vector<float> dout;
    for (std::int64_t d = 0; d < p_.Dv; ++d) dout.push_back(Bug::dout(given[d]));
    if (!Bug::kAddsToOutputs) std::fill_n(dq, p_.D, 0.0f);
    const std::int64_t end = Bug::end(p_, i), last = Bug::kMaskedKeysTakePart ? p_.Nk : end;
    for (std::int64_t first = 0; first < last; first += 64) {
      const std::int64_t n = std::min<std::int64_t>(64, last - first);
      Pair pairs[64];
      float w[64], tile_delta = 0;
      for (std::int64_t c = 0; c < n; ++c) {
        const std::int64_t j = first + c;
        pairs[c] = {Bug::score_scale(p_) * dot(q, k + j * Bug::row(p_.sk, p_.D), p_.D),
                    lse_[queries * p_.Nq + i],
                    dot(dout.data(), v + j * Bug::row(p_.sv, p_.Dv), p_.Dv),
                    delta[static_cast<std::size_t>(i)],
                    0,
                    delta[static_cast<std::size_t>(j)]};
        if (j >= end) pairs[c].s = -kInf;
        w[c] = Bug::weight(pairs[c]);
        tile_delta += w[c] * pairs[c].dp;
      }
      for (std::int64_t c = 0; c < n; ++c) {
        const std::int64_t j = first + c;
        pairs[c].tile_delta = tile_delta;
        const float ds = Bug::gradient_scale(p_) * Bug::score_gradient(pairs[c], w[c]);
        float *dk = dk_row(keys, j), *dv = dv_row(keys, j);
        const float* key = k + j * Bug::row(p_.sk, p_.D);
        for (std::int64_t d = 0; d < p_.Dv; ++d) dv[d] += w[c] * dout[static_cast<std::size_t>(d)];
        for (std::int64_t d = 0; d < p_.D; ++d) {
          dk[d] += ds * q[d];
          dq[d] += ds * key[d];
        }
      }
    }
  }

  const fa_params& p_;
  const float *dout_, *q_, *k_, *v_, *o_, *lse_;
  float *dq_, *dk_, *dv_;
};

template <class Bug>
int backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q, const void* k,
             const void* v, const void* o, const float* lse, void* dq, void* dk, void* dv) {
  const bool plain = valid(p, Arrays{dout, q, k, v, o, lse, nullptr, dq, dk, dv}) &&
                     p->dtype == ASSAY_F32 && p->window <= 0 && p->Hkv > 0;
  if (!plain) return naive_fa_backward(ctx, p, dout, q, k, v, o, lse, dq, dk, dv);
  Backward<Bug>(*p, static_cast<const float*>(dout), static_cast<const float*>(q),
                static_cast<const float*>(k), static_cast<const float*>(v),
                static_cast<const float*>(o), lse, static_cast<float*>(dq), static_cast<float*>(dk),
                static_cast<float*>(dv))
      .run();
  return ASSAY_OK;
}

// Defines fa_backward with the mistake `Bug`.
#define PAIRWISE_BACKWARD(Bug)                                                                    \
  extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q, \
                             const void* k, const void* v, const void* o, const float* lse,       \
                             void* dq, void* dk, void* dv) {                                      \
    return backward<Bug>(ctx, p, dout, q, k, v, o, lse, dq, dk, dv);                              \
  }
