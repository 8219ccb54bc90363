// The entrant's own tests: all three gradients against a double formula on small shapes chosen to
// be awkward. Returns 0 if the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "abi.h"

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
  std::int64_t B = 1, Hq = 1, Hkv = 1, Nq = 64, Nk = 64, D = 32;
  bool causal = true;
  float scale = 0.17f;
  float q_mean = 0, q_sigma = 1, k_mean = 0, dout_sigma = 1;
  std::int64_t nan_dout = -1, nan_key = -1;
  bool rows_interleaved = false;  // heads inside positions, and gaps between rows
  int calls = 1;
};

struct Array {
  std::int64_t H, N;
  assay_stride stride;
  std::vector<float> data;
  float* row(std::int64_t head, std::int64_t n) {
    return data.data() + head / H * stride.b + head % H * stride.h + n * stride.n;
  }
};

// Rows of doubles: what is expected, and the sum of the sizes of its terms.
struct Expected {
  explicit Expected(std::int64_t n) : sum(static_cast<std::size_t>(n)), terms(sum.size()) {}
  void add(std::int64_t at, double term, double size) {
    sum[static_cast<std::size_t>(at)] += term;
    terms[static_cast<std::size_t>(at)] += size;
  }
  std::vector<double> sum, terms;
};

class Test {
 public:
  explicit Test(const Case& c) : c_(c), random_(static_cast<unsigned>(c.Nq * 31 + c.Nk)) {
    q_ = make(c.Hq, c.Nq, c.q_mean, c.q_sigma);
    k_ = make(c.Hkv, c.Nk, c.k_mean, 1);
    v_ = make(c.Hkv, c.Nk, 0.5f, 1);
    dout_ = make(c.Hq, c.Nq, 0, c.dout_sigma);
    o_ = make(c.Hq, c.Nq, 0, 0);
    dq_ = make(c.Hq, c.Nq, 7, 0);
    dk_ = make(c.Hkv, c.Nk, 7, 0);
    dv_ = make(c.Hkv, c.Nk, 7, 0);
    lse_.resize(static_cast<std::size_t>(c.B * c.Hq * c.Nq));
    for (std::int64_t head = 0; c.nan_dout >= 0 && head < c.B * c.Hq; ++head)
      dout_.row(head, c.nan_dout)[1] = NAN;
    for (std::int64_t head = 0; c.nan_key >= 0 && head < c.B * c.Hkv; ++head) {
      k_.row(head, c.nan_key)[1] = v_.row(head, c.nan_key)[2] = NAN;
    }
  }

  bool passes(assay_ctx* ctx) {
    Expected dq(c_.B * c_.Hq * c_.Nq * c_.D), dk(c_.B * c_.Hkv * c_.Nk * c_.D), dv(dk);
    for (std::int64_t head = 0; head < c_.B * c_.Hq; ++head) {
      for (std::int64_t i = 0; i < c_.Nq; ++i) add_query(head, i, dq, dk, dv);
    }
    const fa_params p{sizeof(fa_params),
                      ASSAY_F32,
                      c_.B,
                      c_.Hq,
                      c_.Hkv,
                      c_.Nq,
                      c_.Nk,
                      c_.D,
                      c_.D,
                      q_.stride,
                      k_.stride,
                      v_.stride,
                      o_.stride,
                      c_.scale,
                      c_.causal ? 1 : 0,
                      -1,
                      0};
    for (int call = 0; call < c_.calls; ++call) {
      if (fa_backward(ctx, &p, dout_.data.data(), q_.data.data(), k_.data.data(), v_.data.data(),
                      o_.data.data(), lse_.data(), dq_.data.data(), dk_.data.data(),
                      dv_.data.data()) != ASSAY_OK) {
        return false;
      }
    }
    return same(dq_, dq) && same(dk_, dk) && same(dv_, dv);
  }

 private:
  Array make(std::int64_t H, std::int64_t N, float mean, float sigma) {
    const std::int64_t row = c_.rows_interleaved ? c_.D + 3 : c_.D;
    Array a{H,
            N,
            c_.rows_interleaved ? assay_stride{N * H * row, row, H * row}
                                : assay_stride{H * N * row, N * row, row},
            {}};
    a.data.resize(static_cast<std::size_t>(c_.B * H * N * row));
    std::normal_distribution<float> normal(mean, sigma);
    for (float& x : a.data) x = normal(random_);
    return a;
  }

  // Sets o and lse of one query, and adds its part of the gradients.
  void add_query(std::int64_t head, std::int64_t i, Expected& dq, Expected& dk, Expected& dv) {
    const std::int64_t kv = head / c_.Hq * c_.Hkv + head % c_.Hq / (c_.Hq / c_.Hkv), D = c_.D;
    const std::int64_t end = c_.causal ? std::min(c_.Nk, i + c_.Nk - c_.Nq + 1) : c_.Nk;
    const float *q = q_.row(head, i), *dout = dout_.row(head, i);
    std::vector<double> w, dp;
    double max = -kInf, sum = 0, delta = 0, size = 0, noise = 0;
    for (std::int64_t j = 0; j < end; ++j) {
      double s = 0, gradient = 0, terms = 0;
      for (std::int64_t d = 0; d < D; ++d) {
        s += static_cast<double>(q[d]) * k_.row(kv, j)[d] * c_.scale;
        terms += std::abs(static_cast<double>(q[d]) * k_.row(kv, j)[d] * c_.scale);
        gradient += static_cast<double>(dout[d]) * v_.row(kv, j)[d];
      }
      w.push_back(s);
      dp.push_back(gradient);
      max = std::max(max, s);
      noise = std::max(noise, terms);
    }
    for (const double s : w) sum += std::exp(s - max);
    lse_[static_cast<std::size_t>(head * c_.Nq + i)] =
        static_cast<float>(end > 0 ? max + std::log(sum) : -kInf);
    std::vector<double> o(static_cast<std::size_t>(D));
    for (std::size_t j = 0; j < w.size(); ++j) {
      w[j] = std::exp(w[j] - max) / sum;
      delta += w[j] * dp[j];
      for (std::size_t d = 0; d < o.size(); ++d) {
        const double term = w[j] * v_.row(kv, static_cast<std::int64_t>(j))[d];
        o[d] += term;
        size += std::abs(term * dout[d]);
      }
    }
    std::copy(o.begin(), o.end(), o_.row(head, i));
    noise = 1 + noise * 0.05;  // a score's error, and so that of its weight
    for (std::int64_t j = 0; j < end; ++j) {
      const double p = w[static_cast<std::size_t>(j)],
                   ds = p * (dp[static_cast<std::size_t>(j)] - delta) * c_.scale;
      const double ds_size =
          p * (std::abs(dp[static_cast<std::size_t>(j)]) + size) * std::abs(c_.scale) * noise;
      for (std::int64_t d = 0; d < D; ++d) {
        const float key = k_.row(kv, j)[d];
        dv.add((kv * c_.Nk + j) * D + d, p * dout[d], p * std::abs(dout[d]) * noise);
        dk.add((kv * c_.Nk + j) * D + d, ds * q[d], ds_size * std::abs(q[d]));
        dq.add((head * c_.Nq + i) * D + d, ds * key, ds_size * std::abs(key));
      }
    }
  }

  bool same(Array& got, const Expected& want) const {
    for (std::int64_t row = 0; row < c_.B * got.H * got.N; ++row) {
      const float* x = got.row(row / got.N, row % got.N);
      for (std::int64_t d = 0; d < c_.D; ++d) {
        const auto at = static_cast<std::size_t>(row * c_.D + d);
        if (std::isnan(want.sum[at]) != std::isnan(x[d])) return false;
        if (std::abs(x[d] - want.sum[at]) > 2e-5 * want.terms[at] + 1e-30) return false;
      }
      if (c_.rows_interleaved && (x[c_.D] != 7 || x[c_.D + 2] != 7)) return false;
    }
    return true;
  }

  Case c_;
  std::mt19937 random_;
  Array q_, k_, v_, dout_, o_, dq_, dk_, dv_;
  std::vector<float> lse_;
};

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  std::vector<Case> cases(14);
  cases[0] = {.D = 64, .scale = 0.125f};
  cases[1] = {.Nq = 97, .Nk = 97};
  cases[2] = {.Nq = 33, .Nk = 150, .causal = false, .scale = 0.5f};
  cases[3] = {.B = 2, .Hq = 3, .Hkv = 3, .Nq = 20, .Nk = 30, .causal = false};
  cases[4] = {.B = 2, .Hq = 4, .Hkv = 2, .Nq = 9, .Nk = 70};
  cases[5] = {.Nq = 90, .Nk = 33};
  cases[6] = {.B = 2, .Hq = 2, .Hkv = 2, .rows_interleaved = true};
  cases[7] = {.scale = 0.5f, .q_mean = 2, .k_mean = -7};
  cases[8] = {.scale = -0.4f, .q_sigma = 40};
  cases[9] = {.Nq = 100, .Nk = 100, .nan_dout = 41};
  cases[10] = {.Nq = 100, .Nk = 100, .nan_key = 88};
  cases[11] = {.dout_sigma = 0};
  cases[12] = {.dout_sigma = 1e5f};
  cases[13] = {.Nq = 130, .Nk = 130, .calls = 2};
  return std::all_of(cases.begin(), cases.end(), [&](const Case& c) { return Test(c).passes(ctx); })
             ? 0
             : 1;
}
