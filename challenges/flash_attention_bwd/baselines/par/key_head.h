// A call of the backward pass, and the gradients of one key head with all its query heads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "abi.h"
#include "products.h"
#include "shared/baselines/half.h"
#include "shared/baselines/transpose.h"

namespace {

struct Problem {
  const fa_params& p;
  const fa_extra& e;
  const void *dout, *q, *k, *v;
  const float* lse;
  void *dq, *dk, *dv;
  const float* delta;          // [B, Hq, Nq], less dlse
  std::int64_t lse_head;       // elements of lse from head to head
  std::int64_t D = 0, Dv = 0;  // rounded up to whole vectors
  bool copies = false;         // rows are copied, widened and padded
};

// D is a multiple of kWidth.
bool all_finite(Rows x, std::int64_t n, std::int64_t D) {
  Vec zeros{};
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t d = 0; d < D; d += kWidth)
      zeros += load(x.data + i * x.step + d) * splat(0.0f);
  }
  float zero = 0;
  for (int i = 0; i < kWidth; ++i) zero += zeros[i];
  return zero == 0;
}

class Worker {
 public:
  static std::int64_t floats(const Problem& a) {
    const std::int64_t rows = a.D + a.Dv;
    return kTile * (2 * rows + 2 * kTile + (a.copies ? 2 * rows : 0)) + 4 * kWidth;
  }

  Worker(const Problem& problem, float* scratch) : a_(problem), p_(problem.p), e_(problem.e) {
    const auto take = [&](std::int64_t n) { return std::exchange(scratch, scratch + n); };
    kt_ = take(a_.D * kTile);
    vt_ = take(a_.Dv * kTile);
    dk_ = take(a_.D * kTile);
    dv_ = take(a_.Dv * kTile);
    w_ = take(kTile * kTile);
    ds_ = take(kTile * kTile);
    k_copy_ = a_.copies ? take(a_.D * kTile) : nullptr;
    v_copy_ = a_.copies ? take(a_.Dv * kTile) : nullptr;
    q_copy_ = a_.copies ? take(a_.D * kTile) : nullptr;
    dout_copy_ = a_.copies ? take(a_.Dv * kTile) : nullptr;
  }

  // Key tiles part, part + parts, ... of one key head; sums dq of its query heads into `dq`, whose
  // head and row strides are given.
  void run(std::int64_t b, std::int64_t kv, std::int64_t part, std::int64_t parts, float* dq,
           std::int64_t dq_head, std::int64_t dq_row) {
    b_ = b;
    kv_ = kv;
    dq_ = dq;
    dq_head_ = dq_head;
    dq_row_ = dq_row;
    L_ = e_.kv_len != nullptr ? e_.kv_len[b] : p_.Nk;
    for (std::int64_t h = 0; h < group(); ++h) {
      for (std::int64_t i = 0; i < p_.Nq; ++i)
        std::fill_n(dq + h * dq_head + i * dq_row, lanes_of_dq(), 0.0f);
    }
    for (std::int64_t j = part * kTile; j < p_.Nk; j += parts * kTile)
      keys(j, std::min(kTile, p_.Nk - j));
  }

 private:
  std::int64_t group() const { return p_.Hq / p_.Hkv; }
  std::int64_t lanes_of_dq() const { return a_.copies ? a_.D : p_.D; }

  // Rows n0 .. n0 + n of an array, where they are or copied.
  Rows rows(const void* data, const assay_stride& s, std::int64_t h, std::int64_t n0,
            std::int64_t n, std::int64_t D, std::int64_t padded, float* copy) const {
    const std::int64_t at = b_ * s.b + h * s.h + n0 * s.n;
    if (!a_.copies) return {static_cast<const float*>(data) + at, s.n};
    for (std::int64_t i = 0; i < n; ++i) {
      float* out = copy + i * padded;
      for (std::int64_t d = 0; d < D; ++d) {
        out[d] = p_.dtype == ASSAY_F32
                     ? static_cast<const float*>(data)[at + i * s.n + d]
                     : widen(static_cast<const std::uint16_t*>(data)[at + i * s.n + d], p_.dtype);
      }
      std::fill(out + D, out + padded, 0.0f);
    }
    return {copy, padded};
  }

  // n rows of D, a multiple of kWidth, as [D][kTile]; 0 beyond them.
  static void transpose(Rows x, std::int64_t n, std::int64_t D, float* out) {
    for (std::int64_t j = 0; j < kTile; j += kWidth) {
      for (std::int64_t d = 0; d < D; d += kWidth) {
        Vec square[kWidth];
        for (int r = 0; r < kWidth; ++r)
          square[r] = j + r < n ? load(x.data + (j + r) * x.step + d) : Vec{};
        transpose_square(square);
        for (int r = 0; r < kWidth; ++r) store(out + (d + r) * kTile + j, square[r]);
      }
    }
  }

  void keys(std::int64_t j, std::int64_t n) {
    j_ = j;
    n_ = n;
    std::fill_n(dk_, kTile * a_.D, 0.0f);
    std::fill_n(dv_, kTile * a_.Dv, 0.0f);
    if (j < L_) {
      n_ = std::min(n, L_ - j);
      k_ = rows(a_.k, p_.sk, kv_, j, n_, p_.D, a_.D, k_copy_);
      v_ = rows(a_.v, p_.sv, kv_, j, n_, p_.Dv, a_.Dv, v_copy_);
      transpose(k_, n_, a_.D, kt_);
      transpose(v_, n_, a_.Dv, vt_);
      // Queries before `first` and from `end` on see none of these keys.
      const std::int64_t offset = L_ - p_.Nq;
      const std::int64_t first =
          p_.causal != 0 ? std::clamp<std::int64_t>(j - offset, 0, p_.Nq) : 0;
      const std::int64_t end =
          p_.window > 0 && p_.window < L_ + p_.Nq
              ? std::clamp<std::int64_t>(j + n_ - 1 - offset + p_.window, 0, p_.Nq)
              : p_.Nq;
      for (std::int64_t g = 0; g < group(); ++g) {
        for (std::int64_t i = first; i < end; i += kTile) queries(g, i, std::min(kTile, end - i));
      }
    }
    write(a_.dk, p_.sk, p_.D, a_.D, dk_, n);
    write(a_.dv, p_.sv, p_.Dv, a_.Dv, dv_, n);
  }

  void queries(std::int64_t g, std::int64_t i, std::int64_t m) {
    h_ = kv_ * group() + g;
    i_ = i;
    const Rows q = rows(a_.q, p_.sq, h_, i, m, p_.D, a_.D, q_copy_);
    const Rows dout = rows(a_.dout, p_.so, h_, i, m, p_.Dv, a_.Dv, dout_copy_);
    float* dq = dq_ + g * dq_head_ + i * dq_row_;
    const bool masked = partial(i, m);
    if (masked && !(all_finite(q, m, a_.D) && all_finite(dout, m, a_.Dv) &&
                    all_finite(k_, n_, a_.D) && all_finite(v_, n_, a_.Dv))) {
      return selected(q, dout, m, dq);
    }
    product<false>({q.data, q.step, 1}, {kt_, kTile}, p_.D, w_, kTile, m, kTile);
    product<false>({dout.data, dout.step, 1}, {vt_, kTile}, p_.Dv, ds_, kTile, m, kTile);
    if (masked) {
      weights<true>(m);
    } else {
      weights<false>(m);
    }
    product<true>({w_, 1, kTile}, dout, m, dv_, a_.Dv, n_, a_.Dv);
    product<true>({ds_, 1, kTile}, q, m, dk_, a_.D, n_, a_.D);
    product<true>({ds_, kTile, 1}, k_, n_, dq, dq_row_, m, a_.D);
  }

  std::pair<std::int64_t, std::int64_t> visible(std::int64_t i) const {
    const std::int64_t diagonal = i + L_ - p_.Nq;
    const std::int64_t window = std::min(p_.window, p_.Nq + L_);  // may be any number
    return {window > 0 ? std::max<std::int64_t>(0, diagonal - window + 1) : 0,
            p_.causal != 0 ? std::min(L_, diagonal + 1) : L_};
  }

  // Whether some query of the tile does not see some key of it. Limits rise with i.
  bool partial(std::int64_t i, std::int64_t m) const {
    return visible(i + m - 1).first > j_ || visible(i).second < j_ + n_;
  }

  // Scores and dP become weights and score gradients, both 0 where masked.
  template <bool kMasked>
  void weights(std::int64_t m) {
    const Vec factor = splat(p_.scale * kLog2e), scale = splat(p_.scale);
    const bool adjusted = e_.softcap > 0 || e_.alibi != nullptr;
    alignas(64) float slope[kTile];
    for (std::int64_t r = 0; r < m; ++r) {
      float *w = w_ + r * kTile, *ds = ds_ + r * kTile;
      const std::int64_t row = (b_ * p_.Hq + h_) * p_.Nq + i_ + r;
      const float given = a_.lse[(b_ * p_.Hq + h_) * a_.lse_head + i_ + r];
      const Vec lse = splat(given == -kInf ? kInf : given * kLog2e), delta = splat(a_.delta[row]);
      if (adjusted) adjust(r, w, slope);
      const auto [lo, hi] = visible(i_ + r);
      for (std::int64_t lane = 0; lane < kTile; lane += kWidth) {
        const Vec s = load(w + lane);
        Vec x = exp2_of((adjusted ? s : s * factor) - lse);
        Vec y = x * (load(ds + lane) - delta) * scale;
        if (adjusted) y *= load(slope + lane);
        if constexpr (kMasked) {
          const Int key = static_cast<std::int32_t>(j_ + lane) + lane_numbers();
          const Int seen =
              (key >= static_cast<std::int32_t>(lo)) & (key < static_cast<std::int32_t>(hi));
          x = seen ? x : Vec{};
          y = seen ? y : Vec{};
        }
        store(w + lane, x);
        store(ds + lane, y);
      }
    }
  }

  static Int lane_numbers() {
    Int n{};
    for (int i = 0; i < kWidth; ++i) n[i] = i;
    return n;
  }

  // A score in units of log 2, and its derivative by scale q.k.
  float adjusted_score(std::int64_t r, std::int64_t lane, float dot, float& slope) const {
    float s = dot * p_.scale;
    slope = 1;
    if (e_.softcap > 0) {
      // 1 - tanh^2, without the cancellation that is left of it where tanh is near 1.
      const float decay = std::exp(-2 * std::abs(s / e_.softcap));
      slope = 4 * decay / ((1 + decay) * (1 + decay));
      s = e_.softcap * std::tanh(s / e_.softcap);
    }
    if (e_.alibi != nullptr)
      s -= e_.alibi[h_] * static_cast<float>(std::abs(i_ + r + L_ - p_.Nq - j_ - lane));
    return s * kLog2e;
  }

  void adjust(std::int64_t r, float* s, float* slope) const {
    for (std::int64_t lane = 0; lane < kTile; ++lane)
      s[lane] = adjusted_score(r, lane, s[lane], slope[lane]);
  }

  // The same where a masked operand may be NaN or Inf: pair by pair, touching only what is visible.
  void selected(Rows q, Rows dout, std::int64_t m, float* dq) {
    for (std::int64_t r = 0; r < m; ++r) {
      const auto [lo, hi] = visible(i_ + r);
      const std::int64_t row = (b_ * p_.Hq + h_) * p_.Nq + i_ + r;
      for (std::int64_t c = 0; c < n_; ++c) {
        if (j_ + c < lo || j_ + c >= hi) continue;
        float dot = 0, dp = 0, slope = 1;
        for (std::int64_t d = 0; d < p_.D; ++d)
          dot += q.data[r * q.step + d] * k_.data[c * k_.step + d];
        for (std::int64_t d = 0; d < p_.Dv; ++d)
          dp += dout.data[r * dout.step + d] * v_.data[c * v_.step + d];
        const float w = std::exp2(adjusted_score(r, c, dot, slope) -
                                  a_.lse[(b_ * p_.Hq + h_) * a_.lse_head + i_ + r] * kLog2e);
        const float ds = w * (dp - a_.delta[row]) * slope * p_.scale;
        for (std::int64_t d = 0; d < p_.Dv; ++d)
          dv_[c * a_.Dv + d] += w * dout.data[r * dout.step + d];
        for (std::int64_t d = 0; d < p_.D; ++d) {
          dk_[c * a_.D + d] += ds * q.data[r * q.step + d];
          dq[r * dq_row_ + d] += ds * k_.data[c * k_.step + d];
        }
      }
    }
  }

  void write(void* data, const assay_stride& s, std::int64_t D, std::int64_t padded,
             const float* sums, std::int64_t n) const {
    for (std::int64_t r = 0; r < n; ++r) {
      const std::int64_t at = b_ * s.b + kv_ * s.h + (j_ + r) * s.n;
      for (std::int64_t d = 0; d < D; ++d) {
        if (p_.dtype == ASSAY_F32) {
          static_cast<float*>(data)[at + d] = sums[r * padded + d];
        } else {
          static_cast<std::uint16_t*>(data)[at + d] = narrow(sums[r * padded + d], p_.dtype);
        }
      }
    }
  }

  const Problem& a_;
  const fa_params& p_;
  const fa_extra& e_;
  float *kt_, *vt_, *dk_, *dv_, *w_, *ds_, *k_copy_, *v_copy_, *q_copy_, *dout_copy_;
  std::int64_t b_ = 0, kv_ = 0, h_ = 0, L_ = 0, i_ = 0, j_ = 0, n_ = 0;
  float* dq_ = nullptr;
  std::int64_t dq_head_ = 0, dq_row_ = 0;
  Rows k_{}, v_{};
};

}  // namespace
