// The entrant's own tests on a device: gradients against a double formula on small shapes chosen to
// be awkward. Returns 0 if the implementation linked with it is accepted.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "abi.h"

namespace {

using Vector = std::vector<float>;

// An array on the device, with the contents of one on the host or with NaN.
class Array {
 public:
  explicit Array(const Vector& contents) : size_(contents.size()) {
    cudaMalloc(&data_, (size_ + 1) * sizeof(float));
    cudaMemcpy(data_, contents.data(), size_ * sizeof(float), cudaMemcpyHostToDevice);
  }
  explicit Array(std::size_t size) : Array(Vector(size, NAN)) {}
  Array(const Array&) = delete;
  ~Array() { cudaFree(data_); }
  float* data() const { return data_; }
  Vector contents() const {
    Vector v(size_);
    cudaMemcpy(v.data(), data_, size_ * sizeof(float), cudaMemcpyDeviceToHost);
    return v;
  }

 private:
  float* data_ = nullptr;
  std::size_t size_;
};

struct Case {
  std::int64_t rows, D;
  float mean = 0, sigma = 1, eps = 1e-5f;
  bool odd_gamma = false, twice = false, other_forward = false, constant_row = false,
       nan_row = false;
};

Vector random_vector(std::int64_t n, std::mt19937& random, float mean, float sigma) {
  std::normal_distribution<float> normal(mean, sigma);
  Vector v(static_cast<std::size_t>(n));
  for (float& f : v) f = normal(random);
  return v;
}

bool near(double got, double want, double scale) {
  if (!std::isfinite(want)) return !std::isfinite(got);
  return std::abs(got - want) <= 1e-5 * scale + 1e-12;
}

struct Gradients {
  Vector dx, dgamma, dbeta;
};

// What is right, element by element, on the scale of what was added up.
bool are_right(const Case& c, const Vector& x, const Vector& dy, const Vector& gamma,
               const Gradients& got) {
  const auto D = static_cast<double>(c.D);
  std::vector<double> want_gamma(gamma.size()), want_beta(gamma.size()), scale_gamma(gamma.size()),
      scale_beta(gamma.size());
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const float *xr = x.data() + r * c.D, *dr = dy.data() + r * c.D;
    double mean = 0, var = 0, g = 0, gx = 0, ag = 0, agx = 0;
    for (std::int64_t i = 0; i < c.D; ++i) mean += xr[i] / D;
    for (std::int64_t i = 0; i < c.D; ++i) var += (xr[i] - mean) * (xr[i] - mean) / D;
    const double rstd = 1 / std::sqrt(var + c.eps), slack = 1 + std::abs(mean) * rstd * 0.02;
    for (std::int64_t i = 0; i < c.D; ++i) {
      const auto j = static_cast<std::size_t>(i);
      const double xhat = (xr[i] - mean) * rstd, v = static_cast<double>(dr[i]) * gamma[j];
      g += v / D;
      gx += v * xhat / D;
      ag += std::abs(v) / D;
      agx += std::abs(v * xhat) / D;
      want_gamma[j] += dr[i] * xhat;
      want_beta[j] += dr[i];
      scale_gamma[j] += std::abs(dr[i]) * (std::abs(xhat) + slack);
      scale_beta[j] += std::abs(dr[i]);
    }
    for (std::int64_t i = 0; i < c.D; ++i) {
      const double xhat = (xr[i] - mean) * rstd;
      const double v = static_cast<double>(dr[i]) * gamma[static_cast<std::size_t>(i)];
      const double scale = rstd * (std::abs(v) + ag + std::abs(xhat) * agx) * slack;
      if (!near(got.dx[static_cast<std::size_t>(r * c.D + i)], rstd * (v - g - xhat * gx), scale))
        return false;
    }
  }
  for (std::size_t j = 0; j < gamma.size(); ++j) {
    if (!near(got.dgamma[j], want_gamma[j], scale_gamma[j])) return false;
    if (!near(got.dbeta[j], want_beta[j], scale_beta[j])) return false;
  }
  return true;
}

bool passes(assay_ctx* ctx, const Case& c) {
  std::mt19937 random(static_cast<unsigned>(c.rows * 31 + c.D));
  const ln_params p{sizeof(ln_params), ASSAY_F32, c.rows, c.D, c.eps};
  const std::int64_t n = c.rows * c.D;
  Vector x = random_vector(n, random, c.mean, c.sigma), dy = random_vector(n, random, 0.5f, 1);
  Vector gamma = random_vector(c.D, random, 1, 0.3f);
  for (std::int64_t i = 0; c.odd_gamma && i < c.D; i += 3)
    gamma[static_cast<std::size_t>(i)] = i % 2 == 0 ? 0 : -100;
  for (std::int64_t i = 0; c.constant_row && i < c.D; ++i) x[static_cast<std::size_t>(i)] = 3;
  if (c.nan_row) x[static_cast<std::size_t>(c.D + 1)] = NAN;

  const std::size_t floats = ln_cache_bytes(&p) / sizeof(float) + 1;
  const Array on_x(x), on_dy(dy), on_gamma(gamma), beta(random_vector(c.D, random, 0, 1)),
      other(random_vector(n, random, 5, 2)), cache(floats), other_cache(floats), y(x.size()),
      dx(x.size()), dgamma(gamma.size()), dbeta(gamma.size());
  if (ln_forward(ctx, &p, on_x.data(), on_gamma.data(), beta.data(), y.data(), cache.data()) !=
      ASSAY_OK)
    return false;
  if (c.other_forward) {
    ln_forward(ctx, &p, other.data(), on_gamma.data(), beta.data(), y.data(), other_cache.data());
  }
  for (int round = 0; round < (c.twice ? 2 : 1); ++round) {
    if (ln_backward(ctx, &p, on_dy.data(), on_x.data(), on_gamma.data(), cache.data(), dx.data(),
                    dgamma.data(), dbeta.data()) != ASSAY_OK)
      return false;
  }
  if (cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream)) != cudaSuccess) return false;
  return are_right(c, x, dy, gamma, {dx.contents(), dgamma.contents(), dbeta.contents()});
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  Case odd{6, 60}, twice{6, 32}, other{6, 32}, constant{4, 64}, nan{4, 32};
  odd.odd_gamma = twice.twice = other.other_forward = constant.constant_row = nan.nan_row = true;
  for (const Case& c : {Case{8, 64}, Case{1, 50}, Case{5, 3}, Case{33, 17}, Case{4, 1},
                        Case{6, 128, 1e4f}, Case{6, 64, 0, 1e-3f}, Case{6, 64, 0, 1e-3f, 1e-12f},
                        Case{6, 64, 0, 1, 0.5f}, odd, twice, other, constant, nan}) {
    if (!passes(ctx, c)) return 1;
  }
  return 0;
}
