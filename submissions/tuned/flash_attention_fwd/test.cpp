// The entrant's own tests: output against a double formula for contiguous arrays of a few shapes
// and ranges of scores. Returns 0 if the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "abi.h"

namespace {

using Floats = std::vector<float>;

struct Shape {
  std::int64_t B, Hq, Hkv, Nq, Nk, D;
  int causal;
  float scale, q_sigma, k_mean;
};

Floats normals(std::int64_t n, float mean, float sigma, std::mt19937& random) {
  std::normal_distribution<float> normal(mean, sigma);
  Floats x(static_cast<std::size_t>(n));
  for (float& f : x) f = normal(random);
  return x;
}

assay_stride contiguous(std::int64_t H, std::int64_t N, std::int64_t D) {
  return {H * N * D, N * D, D};
}

// Whether one row is the softmax average of the first n values, and its lse right.
bool row_is_right(const Shape& c, const float* q, const float* k, const float* v, std::int64_t n,
                  const float* o, float lse) {
  std::vector<double> s(static_cast<std::size_t>(std::max<std::int64_t>(n, 0))),
      want(static_cast<std::size_t>(c.D));
  double max = -std::numeric_limits<double>::infinity(), sum = 0, slack = 1;
  for (std::size_t j = 0; j < s.size(); ++j) {
    double size = 0;
    for (std::size_t d = 0; d < want.size(); ++d) {
      const double term = static_cast<double>(q[d]) * k[j * want.size() + d] * c.scale;
      s[j] += term;
      size += std::abs(term);
    }
    max = std::max(max, s[j]);
    slack = std::max(slack, size * 0.1);
  }
  for (double& x : s) sum += x = std::exp(x - max);
  for (std::size_t d = 0; d < want.size(); ++d) {
    double scale = 1e-3;
    for (std::size_t j = 0; j < s.size(); ++j) {
      want[d] += s[j] / sum * v[j * want.size() + d];
      scale += std::abs(s[j] / sum * v[j * want.size() + d]);
    }
    if (!(std::abs(want[d] - o[d]) <= 1e-5 * slack * scale)) return false;
  }
  return s.empty() ? lse == -std::numeric_limits<float>::infinity()
                   : std::abs(max + std::log(sum) - lse) <= 1e-5 * slack;
}

bool passes(assay_ctx* ctx, const Shape& c) {
  std::mt19937 random(static_cast<unsigned>(c.Nq + 1000 * c.Nk));
  const std::int64_t queries = c.B * c.Hq * c.Nq, keys = c.B * c.Hkv * c.Nk;
  const Floats q = normals(queries * c.D, 1, c.q_sigma, random),
               k = normals(keys * c.D, c.k_mean, 1, random);
  const Floats v = normals(keys * c.D, 1, 1, random);
  Floats o(q.size(), NAN), lse(static_cast<std::size_t>(queries), NAN);
  const assay_stride row = contiguous(c.Hq, c.Nq, c.D), key = contiguous(c.Hkv, c.Nk, c.D);
  const fa_params p{
      sizeof(fa_params), ASSAY_F32, c.B, c.Hq, c.Hkv, c.Nq, c.Nk, c.D, c.D, row, key, key, row,
      c.scale,           c.causal,  -1,  0};
  if (fa_forward(ctx, &p, q.data(), k.data(), v.data(), o.data(), lse.data()) != ASSAY_OK)
    return false;
  for (std::int64_t r = 0; r < queries; ++r) {
    const std::int64_t b = r / (c.Hq * c.Nq), kv = r / c.Nq % c.Hq / (c.Hq / c.Hkv), i = r % c.Nq;
    const std::int64_t at = (b * c.Hkv + kv) * c.Nk * c.D,
                       seen = c.causal != 0 ? std::min(c.Nk, i + 1 + c.Nk - c.Nq) : c.Nk;
    if (!row_is_right(c, &q[static_cast<std::size_t>(r * c.D)], &k[static_cast<std::size_t>(at)],
                      &v[static_cast<std::size_t>(at)], seen, &o[static_cast<std::size_t>(r * c.D)],
                      lse[static_cast<std::size_t>(r)])) {
      return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  for (const Shape& c :
       {Shape{1, 2, 2, 70, 70, 64, 1, 0.125f, 1, 0}, Shape{2, 3, 3, 33, 200, 32, 0, 0.3f, 1, 0},
        Shape{2, 4, 2, 7, 130, 32, 1, 0.2f, 1, 0}, Shape{1, 2, 1, 80, 21, 64, 1, 0.1f, 1, 0},
        Shape{1, 1, 1, 64, 64, 32, 1, 1.0f, 1, -9}, Shape{1, 1, 1, 64, 300, 32, 0, 1.0f, 30, 2}}) {
    if (!passes(ctx, c)) return 1;
  }
  return 0;
}
