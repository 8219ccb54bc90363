// The entrant's own tests: no formula for the gradients, but differences. The loss sum(dout o),
// computed in double, is moved along a random direction of q, k or v; the gradients must predict by
// how much it changes. Returns 0 if the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "abi.h"

namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

struct Shape {
  std::int64_t B, Hq, Hkv, Nq, Nk, D;
  int causal;
  float scale, k_mean, dout_sigma;
};

Floats normals(std::int64_t n, float mean, float sigma, std::mt19937& random) {
  std::normal_distribution<float> normal(mean, sigma);
  Floats x(static_cast<std::size_t>(n));
  for (float& f : x) f = normal(random);
  return x;
}

Doubles moved(const Floats& x, const Floats& direction, double step) {
  Doubles y(x.begin(), x.end());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += step * direction[i];
  return y;
}

// sum(dout o) of attention over contiguous arrays; o and lse on request.
double loss(const Shape& c, const Doubles& q, const Doubles& k, const Doubles& v,
            const Floats& dout, Floats* o, Floats* lse) {
  const auto D = static_cast<std::size_t>(c.D);
  double total = 0;
  for (std::int64_t r = 0; r < c.B * c.Hq * c.Nq; ++r) {
    const std::int64_t b = r / (c.Hq * c.Nq), kv = r / c.Nq % c.Hq / (c.Hq / c.Hkv), i = r % c.Nq;
    const auto row = static_cast<std::size_t>(r),
               key = static_cast<std::size_t>((b * c.Hkv + kv) * c.Nk);
    const std::int64_t seen = c.causal != 0 ? std::min(c.Nk, i + 1 + c.Nk - c.Nq) : c.Nk;
    Doubles s(static_cast<std::size_t>(std::max<std::int64_t>(seen, 0)));
    double max = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::size_t j = 0; j < s.size(); ++j) {
      for (std::size_t d = 0; d < D; ++d) s[j] += q[row * D + d] * k[(key + j) * D + d] * c.scale;
      max = std::max(max, s[j]);
    }
    for (double& x : s) sum += x = std::exp(x - max);
    for (std::size_t d = 0; d < D; ++d) {
      double out = 0;
      for (std::size_t j = 0; j < s.size(); ++j) out += s[j] / sum * v[(key + j) * D + d];
      total += out * dout[row * D + d];
      if (o != nullptr) (*o)[row * D + d] = static_cast<float>(out);
    }
    if (lse != nullptr) (*lse)[row] = static_cast<float>(s.empty() ? max : max + std::log(sum));
  }
  return total;
}

// Whether a gradient predicts a change, which is a sum of many terms of both signs.
bool predicts(const Floats& gradient, const Floats& direction, double change) {
  double sum = 0, square = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    sum += static_cast<double>(gradient[i]) * direction[i];
    square += static_cast<double>(gradient[i]) * gradient[i];
  }
  return std::abs(sum - change) <= 1e-3 * std::sqrt(square) + 1e-7;
}

bool passes(assay_ctx* ctx, const Shape& c) {
  std::mt19937 random(static_cast<unsigned>(c.Nq + 1000 * c.Nk));
  const std::int64_t rows = c.B * c.Hq * c.Nq, keys = c.B * c.Hkv * c.Nk;
  const Floats q = normals(rows * c.D, 0.3f, 1, random),
               k = normals(keys * c.D, c.k_mean, 1, random);
  const Floats v = normals(keys * c.D, 0.5f, 1, random),
               dout = normals(rows * c.D, 0, c.dout_sigma, random);
  const Floats dir_q = normals(rows * c.D, 0, 1, random), dir_k = normals(keys * c.D, 0, 1, random);
  const Floats dir_v = normals(keys * c.D, 0, 1, random);
  Floats o(q.size()), lse(static_cast<std::size_t>(rows)), dq(q.size(), 3.0f), dk(k.size(), 3.0f),
      dv(v.size(), 3.0f);
  const Doubles at_q = moved(q, q, 0), at_k = moved(k, k, 0), at_v = moved(v, v, 0);
  loss(c, at_q, at_k, at_v, dout, &o, &lse);
  const assay_stride row{c.Hq * c.Nq * c.D, c.Nq * c.D, c.D},
      key{c.Hkv * c.Nk * c.D, c.Nk * c.D, c.D};
  const fa_params p{
      sizeof(fa_params), ASSAY_F32, c.B, c.Hq, c.Hkv, c.Nq, c.Nk, c.D, c.D, row, key, key, row,
      c.scale,           c.causal,  -1,  0};
  if (fa_backward(ctx, &p, dout.data(), q.data(), k.data(), v.data(), o.data(), lse.data(),
                  dq.data(), dk.data(), dv.data()) != ASSAY_OK)
    return false;
  const double h = 1e-5;
  const auto change = [&](auto loss_at) { return (loss_at(h) - loss_at(-h)) / (2 * h); };
  return predicts(dq, dir_q, change([&](double t) {
                    return loss(c, moved(q, dir_q, t), at_k, at_v, dout, nullptr, nullptr);
                  })) &&
         predicts(dk, dir_k, change([&](double t) {
                    return loss(c, at_q, moved(k, dir_k, t), at_v, dout, nullptr, nullptr);
                  })) &&
         predicts(dv, dir_v, change([&](double t) {
                    return loss(c, at_q, at_k, moved(v, dir_v, t), dout, nullptr, nullptr);
                  }));
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  for (const Shape& c :
       {Shape{1, 2, 2, 70, 70, 64, 1, 0.125f, 0, 1}, Shape{2, 2, 2, 33, 100, 32, 0, 0.3f, 0, 1},
        Shape{2, 4, 2, 7, 90, 32, 1, 0.2f, 0, 1}, Shape{1, 2, 1, 80, 21, 32, 1, 0.1f, 0, 1},
        Shape{1, 1, 1, 64, 64, 32, 1, 1.0f, -10, 1}, Shape{1, 1, 1, 20, 30, 32, 1, 0.2f, 0, 0}}) {
    if (!passes(ctx, c)) return 1;
  }
  return 0;
}
