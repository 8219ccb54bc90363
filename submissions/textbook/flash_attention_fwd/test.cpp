// The entrant's own tests: output and lse against a double formula on small shapes chosen to be
// awkward. Returns 0 if the implementation linked with it is accepted.
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
  float q_mean = 0, q_sigma = 1, k_mean = 0;
  float slope = 0;  // of the scores over the keys
  std::int64_t nan_query = -1, nan_key = -1;
  bool rows_interleaved = false;  // heads inside positions, and gaps between rows
  bool no_lse = false;
};

struct Array {
  assay_stride stride;
  std::vector<float> data;
  float* row(std::int64_t b, std::int64_t h, std::int64_t n) {
    return data.data() + b * stride.b + h * stride.h + n * stride.n;
  }
};

Array make(const Case& c, std::int64_t H, std::int64_t N, std::mt19937& random, float mean,
           float sigma) {
  const std::int64_t row = c.rows_interleaved ? c.D + 3 : c.D;
  Array a;
  a.stride = c.rows_interleaved ? assay_stride{N * H * row, row, H * row}
                                : assay_stride{H * N * row, N * row, row};
  a.data.resize(static_cast<std::size_t>(c.B * H * N * row));
  std::normal_distribution<float> normal(mean, sigma);
  for (float& x : a.data) x = normal(random);
  return a;
}

class Test {
 public:
  explicit Test(const Case& c) : c_(c), random_(static_cast<unsigned>(c.Nq * 31 + c.Nk)) {
    q_ = make(c, c.Hq, c.Nq, random_, c.q_mean, c.q_sigma);
    k_ = make(c, c.Hkv, c.Nk, random_, c.k_mean, 1);
    v_ = make(c, c.Hkv, c.Nk, random_, 0.3f, 1);
    o_ = make(c, c.Hq, c.Nq, random_, 7, 0);
    lse_.assign(static_cast<std::size_t>(c.B * c.Hq * c.Nq), 7.0f);
    for (std::int64_t head = 0; head < c.B * c.Hq; ++head) {
      for (std::int64_t i = 0; c.slope != 0 && i < c.Nq; ++i)
        q_.row(head / c.Hq, head % c.Hq, i)[0] = 1 / c.scale;
      if (c.nan_query >= 0) q_.row(head / c.Hq, head % c.Hq, c.nan_query)[1] = NAN;
    }
    for (std::int64_t head = 0; head < c.B * c.Hkv; ++head) {
      for (std::int64_t j = 0; c.slope != 0 && j < c.Nk; ++j) {
        k_.row(head / c.Hkv, head % c.Hkv, j)[0] = c.slope * static_cast<float>(j);
      }
      if (c.nan_key >= 0)
        k_.row(head / c.Hkv, head % c.Hkv, c.nan_key)[1] =
            v_.row(head / c.Hkv, head % c.Hkv, c.nan_key)[2] = NAN;
    }
  }

  bool passes(assay_ctx* ctx) {
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
    float* lse = c_.no_lse ? nullptr : lse_.data();
    if (fa_forward(ctx, &p, q_.data.data(), k_.data.data(), v_.data.data(), o_.data.data(), lse) !=
        ASSAY_OK)
      return false;
    for (std::int64_t b = 0; b < c_.B; ++b) {
      for (std::int64_t h = 0; h < c_.Hq; ++h) {
        for (std::int64_t i = 0; i < c_.Nq; ++i) {
          if (!row_is_right(b, h, i)) return false;
        }
      }
    }
    return gaps_survive();
  }

 private:
  // got is near want, on the scale of what was added up; not finite where want is not.
  static bool near(double got, double want, double tolerance) {
    if (std::isnan(want)) return std::isnan(got);
    return want == got || std::abs(got - want) <= tolerance;
  }

  bool row_is_right(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t kv = h / (c_.Hq / c_.Hkv),
                       end = c_.causal ? std::min(c_.Nk, i + c_.Nk - c_.Nq + 1) : c_.Nk;
    std::vector<double> s, want(static_cast<std::size_t>(c_.D)), scale(want.size());
    double max = -kInf, sum = 0, terms = 0;
    for (std::int64_t j = 0; j < end; ++j) {
      double dot = 0, size = 0;
      for (std::int64_t d = 0; d < c_.D; ++d) {
        const double term =
            static_cast<double>(q_.row(b, h, i)[d]) * k_.row(b, kv, j)[d] * c_.scale;
        dot += term;
        size += std::abs(term);
      }
      s.push_back(dot);
      max = std::isnan(dot) ? dot : std::max(dot, max);
      terms = std::max(terms, size);
    }
    for (const double x : s) sum += std::exp(x - max);
    for (std::int64_t j = 0; j < end; ++j) {
      for (std::size_t d = 0; d < want.size(); ++d) {
        const double term =
            std::exp(s[static_cast<std::size_t>(j)] - max) / sum * v_.row(b, kv, j)[d];
        want[d] += term;
        scale[d] += std::abs(term);
      }
    }
    const double tolerance = 1e-5 + 1e-6 * terms;  // of a score, and so of a weight
    for (std::size_t d = 0; d < want.size(); ++d) {
      if (!near(o_.row(b, h, i)[d], want[d], tolerance * (scale[d] + 1e-3))) return false;
    }
    const double lse = max + std::log(sum);
    return c_.no_lse || near(lse_[static_cast<std::size_t>((b * c_.Hq + h) * c_.Nq + i)],
                             end > 0 ? lse : -kInf, tolerance);
  }

  bool gaps_survive() {
    const std::int64_t row = c_.rows_interleaved ? c_.D + 3 : c_.D;
    for (std::size_t at = 0; at < o_.data.size(); ++at) {
      if (static_cast<std::int64_t>(at) % row >= c_.D && o_.data[at] != 7.0f) return false;
    }
    return true;
  }

  Case c_;
  std::mt19937 random_;
  Array q_, k_, v_, o_;
  std::vector<float> lse_;
};

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  std::vector<Case> cases(15);
  cases[0].D = 64;
  cases[1] = {.Nq = 97, .Nk = 97};
  cases[2] = {.Nq = 50, .Nk = 150, .causal = false};
  cases[3] = {.B = 2, .Hq = 3, .Hkv = 3, .Nq = 20, .Nk = 30, .causal = false};
  cases[4] = {.B = 2, .Hq = 4, .Hkv = 2, .Nq = 9, .Nk = 70};
  cases[5] = {.B = 2, .Hq = 4, .Hkv = 1, .Nq = 1, .Nk = 77};
  cases[6] = {.Nq = 90, .Nk = 33};
  cases[7] = {.B = 2, .Hq = 2, .Hkv = 2, .rows_interleaved = true};
  cases[8] = {.Nq = 40, .Nk = 300, .causal = false, .slope = 0.2f};
  cases[9] = {.Nq = 40, .Nk = 300, .causal = false, .slope = -0.2f};
  cases[10] = {.scale = 0.5f, .q_mean = 2, .k_mean = -7};
  cases[11] = {.scale = -0.4f, .q_sigma = 40};
  cases[12] = {.Nq = 100, .Nk = 100, .nan_query = 41};
  cases[13] = {.Nq = 100, .Nk = 100, .nan_key = 88};
  cases[14] = {.scale = 0, .no_lse = true};
  return std::all_of(cases.begin(), cases.end(), [&](const Case& c) { return Test(c).passes(ctx); })
             ? 0
             : 1;
}
