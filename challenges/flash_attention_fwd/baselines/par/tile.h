// A call of the forward pass, and one tile of its queries against all keys that they see.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "abi.h"
#include "products.h"
#include "shared/baselines/half.h"

namespace {

struct Problem {
  const fa_params& p;
  const fa_extra& e;
  const void *q, *k, *v;
  void* o;
  float* lse;
  std::int64_t lse_head;  // elements of lse from head to head
  const fa_bias* shape;   // of the bias
  const float* bias;
  std::int64_t group = 1, tiles = 0;  // query heads of a key head, query tiles of a key head
};

// Rows of K or V as fp32: the caller's own memory, or a converted copy.
struct Floats {
  const float* data;
  std::int64_t step;
};

Floats rows_of(const void* data, std::int64_t at, std::int64_t step, std::int64_t n, std::int64_t D,
               std::int32_t dtype, float* copy) {
  if (dtype == ASSAY_F32) return {static_cast<const float*>(data) + at, step};
  const auto* x = static_cast<const std::uint16_t*>(data) + at;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t d = 0; d < D; ++d) copy[i * D + d] = widen(x[i * step + d], dtype);
  }
  return {copy, D};
}

bool all_finite(Floats x, std::int64_t n, std::int64_t D) {
  float zero = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t d = 0; d < D; ++d) zero += x.data[i * x.step + d] * 0.0f;
  }
  return zero == 0;
}

class Tile {
 public:
  static std::size_t floats(const fa_params& p) {
    const std::int64_t copies = p.dtype == ASSAY_F32 ? 0 : kKeys * (p.D + p.Dv);
    return static_cast<std::size_t>((p.D + p.Dv + kKeys) * kRows + copies + 8 * kRows);
  }

  Tile(const Problem& problem, float* scratch) : problem_(problem), p_(problem.p), e_(problem.e) {
    const auto take = [&](std::int64_t n) { return std::exchange(scratch, scratch + n); };
    q_ = take(p_.D * kRows);
    o_ = take(p_.Dv * kRows);
    s_ = take(kKeys * kRows);
    max_ = take(kRows);
    sum_ = take(kRows);
    keep_ = take(kRows);
    slope_ = take(kRows);
    lo_ = reinterpret_cast<std::int32_t*>(take(kRows));
    hi_ = reinterpret_cast<std::int32_t*>(take(kRows));
    diagonal_ = take(kRows);
    take(kRows);
    copy_ = scratch;
  }

  // Query rows first .. of key head kv; row r is query r % Nq of head kv * group + r / Nq.
  void run(std::int64_t b, std::int64_t kv, std::int64_t first) {
    b_ = b;
    kv_ = kv;
    first_ = first;
    rows_ = std::min(kRows, problem_.group * p_.Nq - first);
    L_ = e_.kv_len != nullptr ? e_.kv_len[b] : p_.Nk;
    pack_queries();
    std::fill_n(o_, p_.Dv * kRows, 0.0f);
    for (std::int64_t lane = 0; lane < kRows; ++lane) {
      const float sink = e_.sink != nullptr ? e_.sink[head(lane)] : -kInf;
      max_[lane] = sink * kLog2e;
      sum_[lane] = e_.sink != nullptr ? 1.0f : 0.0f;
    }
    for (std::int64_t j = least_lo_ / kKeys * kKeys; j < most_hi_; j += kKeys)
      keys(j, std::min(kKeys, L_ - j));
    write();
  }

 private:
  std::int64_t row(std::int64_t lane) const { return first_ + std::min(lane, rows_ - 1); }
  std::int64_t head(std::int64_t lane) const { return kv_ * problem_.group + row(lane) / p_.Nq; }
  std::int64_t query(std::int64_t lane) const { return row(lane) % p_.Nq; }

  void pack_queries() {
    // Scores come out in units of log 2, except where tanh needs them natural.
    const float scale = e_.softcap > 0 ? p_.scale / e_.softcap : p_.scale * kLog2e;
    least_lo_ = L_;
    most_hi_ = 0;
    most_lo_ = 0;
    least_hi_ = L_;
    for (std::int64_t lane = 0; lane < kRows; ++lane) {
      const std::int64_t at = b_ * p_.sq.b + head(lane) * p_.sq.h + query(lane) * p_.sq.n;
      if (p_.dtype == ASSAY_F32) {
        const float* x = static_cast<const float*>(problem_.q) + at;
        for (std::int64_t d = 0; d < p_.D; ++d) q_[d * kRows + lane] = x[d] * scale;
      } else {
        const auto* x = static_cast<const std::uint16_t*>(problem_.q) + at;
        for (std::int64_t d = 0; d < p_.D; ++d)
          q_[d * kRows + lane] = widen(x[d], p_.dtype) * scale;
      }
      const std::int64_t diagonal = query(lane) + L_ - p_.Nq;
      std::int64_t lo = 0, hi = L_;
      if (p_.causal != 0) hi = std::clamp<std::int64_t>(diagonal + 1, 0, L_);
      const std::int64_t window = std::min(p_.window, p_.Nq + L_);  // may be any number
      if (window > 0) lo = std::clamp<std::int64_t>(diagonal - window + 1, 0, L_);
      lo_[lane] = static_cast<std::int32_t>(lo);
      hi_[lane] = static_cast<std::int32_t>(hi);
      diagonal_[lane] = static_cast<float>(diagonal);
      slope_[lane] = e_.alibi != nullptr ? e_.alibi[head(lane)] * kLog2e : 0.0f;
      least_lo_ = std::min(least_lo_, lo);
      most_lo_ = std::max(most_lo_, lo);
      least_hi_ = std::min(least_hi_, hi);
      most_hi_ = std::max(most_hi_, hi);
    }
  }

  void keys(std::int64_t j, std::int64_t n) {
    const std::int64_t k_at = b_ * p_.sk.b + kv_ * p_.sk.h + j * p_.sk.n;
    const std::int64_t v_at = b_ * p_.sv.b + kv_ * p_.sv.h + j * p_.sv.n;
    const Floats k = rows_of(problem_.k, k_at, p_.sk.n, n, p_.D, p_.dtype, copy_);
    const Floats v = rows_of(problem_.v, v_at, p_.sv.n, n, p_.Dv, p_.dtype, copy_ + kKeys * p_.D);
    product<false>(k.data, k.step, 1, q_, p_.D, s_, n, nullptr);
    if (e_.softcap > 0 || e_.alibi != nullptr || problem_.bias != nullptr) adjust(j, n);
    const bool masked = j < most_lo_ || j + n > least_hi_;
    if (masked) mask(j, n);
    weights(n);
    if (masked && !all_finite(v, n, p_.Dv)) return selected_values(v, j, n);
    product<true>(v.data, 1, v.step, s_, n, o_, p_.Dv, keep_);
  }

  void adjust(std::int64_t j, std::int64_t n) {
    for (std::int64_t r = 0; r < n; ++r) {
      float* s = s_ + r * kRows;
      for (std::int64_t lane = 0; lane < kRows && e_.softcap > 0; ++lane) {
        s[lane] = e_.softcap * kLog2e * std::tanh(s[lane]);
      }
      for (std::int64_t lane = 0; lane < kRows; ++lane) {
        s[lane] -= slope_[lane] * std::fabs(diagonal_[lane] - static_cast<float>(j + r));
      }
    }
    if (problem_.bias != nullptr) add_bias(j, n);
  }

  void add_bias(std::int64_t j, std::int64_t n) {
    const fa_bias& b = *problem_.shape;
    for (std::int64_t lane = 0; lane < kRows; ++lane) {
      const std::int64_t row = (b_ % b.B * b.Hq + head(lane) % b.Hq) * b.Nq + query(lane) % b.Nq;
      const float* bias = problem_.bias + row * b.Nk;
      for (std::int64_t r = 0; r < n; ++r) s_[r * kRows + lane] += bias[(j + r) % b.Nk] * kLog2e;
    }
  }

  Int sees(std::int64_t key, std::int64_t lane) const {
    const Int at = static_cast<std::int32_t>(key) - Int{};
    return (at >= *reinterpret_cast<const Int*>(lo_ + lane)) &
           (at < *reinterpret_cast<const Int*>(hi_ + lane));
  }

  void mask(std::int64_t j, std::int64_t n) {
    for (std::int64_t r = 0; r < n; ++r) {
      for (std::int64_t lane = 0; lane < kRows; lane += kWidth) {
        float* s = s_ + r * kRows + lane;
        store(s, select(sees(j + r, lane), load(s), splat(-kInf)));
      }
    }
  }

  // Scores become weights relative to the new maximum; keep_ is what old sums are worth now. A NaN
  // score loses every comparison but stays in its weight, and so spoils its lane's sum and output.
  void weights(std::int64_t n) {
    for (std::int64_t lane = 0; lane < kRows; lane += kWidth) {
      const Vec old = load(max_ + lane);
      Vec a = old, b = old;
      for (std::int64_t r = 0; r + 1 < n; r += 2) {
        const Vec x = load(s_ + r * kRows + lane), y = load(s_ + (r + 1) * kRows + lane);
        a = select(x > a, x, a);
        b = select(y > b, y, b);
      }
      if (n % 2 != 0) {
        const Vec x = load(s_ + (n - 1) * kRows + lane);
        a = select(x > a, x, a);
      }
      const Vec max = select(a > b, a, b);
      const Vec base =
          select(max == splat(-kInf), Vec{}, max);  // nothing seen yet: -inf - 0, not -inf + inf
      const Vec keep = exp2_of(old - base);
      Vec sum[4] = {load(sum_ + lane) * keep, Vec{}, Vec{}, Vec{}};
      std::int64_t r = 0;
      for (; r + 4 <= n; r += 4) {
        for (int u = 0; u < 4; ++u) {
          float* s = s_ + (r + u) * kRows + lane;
          const Vec w = exp2_of(load(s) - base);
          sum[u] += w;
          store(s, w);
        }
      }
      for (; r < n; ++r) {
        float* s = s_ + r * kRows + lane;
        const Vec w = exp2_of(load(s) - base);
        sum[0] += w;
        store(s, w);
      }
      store(max_ + lane, max);
      store(sum_ + lane, (sum[0] + sum[1]) + (sum[2] + sum[3]));
      store(keep_ + lane, keep);
    }
  }

  // The product where a masked value may be NaN or Inf: lanes that do not see a key leave it out.
  void selected_values(Floats v, std::int64_t j, std::int64_t n) {
    for (std::int64_t d = 0; d < p_.Dv; ++d) {
      for (std::int64_t lane = 0; lane < kRows; lane += kWidth) {
        float* o = o_ + d * kRows + lane;
        Vec sum = load(o) * load(keep_ + lane);
        for (std::int64_t r = 0; r < n; ++r) {
          const Vec term = splat(v.data[r * v.step + d]) * load(s_ + r * kRows + lane);
          sum += select(sees(j + r, lane), term, Vec{});
        }
        store(o, sum);
      }
    }
  }

  void write() {
    for (std::int64_t lane = 0; lane < rows_; ++lane) {
      const std::int64_t h = head(lane), i = query(lane);
      const float scale = sum_[lane] == 0 ? 0.0f : 1 / sum_[lane];
      const std::int64_t at = b_ * p_.so.b + h * p_.so.h + i * p_.so.n;
      if (p_.dtype == ASSAY_F32) {
        float* o = static_cast<float*>(problem_.o) + at;
        for (std::int64_t d = 0; d < p_.Dv; ++d) o[d] = o_[d * kRows + lane] * scale;
      } else {
        auto* o = static_cast<std::uint16_t*>(problem_.o) + at;
        for (std::int64_t d = 0; d < p_.Dv; ++d)
          o[d] = narrow(o_[d * kRows + lane] * scale, p_.dtype);
      }
      if (problem_.lse == nullptr) continue;
      problem_.lse[(b_ * p_.Hq + h) * problem_.lse_head + i] =
          sum_[lane] == 0 ? -kInf
                          : static_cast<float>((max_[lane] + std::log2(double{sum_[lane]})) * kLn2);
    }
  }

  const Problem& problem_;
  const fa_params& p_;
  const fa_extra& e_;
  float *q_, *o_, *s_, *max_, *sum_, *keep_, *slope_, *diagonal_, *copy_;
  std::int32_t *lo_, *hi_;
  std::int64_t b_ = 0, kv_ = 0, first_ = 0, rows_ = 0, L_ = 0;
  std::int64_t least_lo_ = 0, most_lo_ = 0, least_hi_ = 0, most_hi_ = 0;
};

}  // namespace
