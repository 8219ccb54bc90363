// The entrant's own tests on a device: gradients against sums of doubles, with rows of every length
// and awkward values, caches that are used twice and after another forward. Returns 0 if the
// implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "abi.h"

namespace {

using Floats = std::vector<float>;

// Device memory that goes back at the end of its scope.
class Memory {
 public:
  explicit Memory(std::size_t floats, const float* contents = nullptr) : floats_(floats) {
    cudaMalloc(&data_, (floats + 1) * sizeof(float));
    const Floats garbage(floats, NAN);
    cudaMemcpy(data_, contents != nullptr ? contents : garbage.data(), floats * sizeof(float),
               cudaMemcpyHostToDevice);
  }
  explicit Memory(const Floats& contents) : Memory(contents.size(), contents.data()) {}
  Memory(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }
  float* get() const { return data_; }
  Floats read() const {
    Floats host(floats_);
    cudaMemcpy(host.data(), data_, floats_ * sizeof(float), cudaMemcpyDeviceToHost);
    return host;
  }

 private:
  float* data_ = nullptr;
  std::size_t floats_;
};

enum Feature : unsigned {
  kPlain = 0,
  kCallTwice = 1,
  kForwardBetween = 2,  // of other rows, with a cache of its own
  kStrangeGamma = 4,    // 0, negative, large
  kFlatRow = 8,         // row 0 has one value only
  kNanRow = 16,         // x of the last row holds a NaN
};

struct Case {
  std::size_t rows, D;
  float center = 0, spread = 1, eps = 1e-5f;
  unsigned features = kPlain;
};

// A gradient, and the size of what was added up to it.
struct Sum {
  double value = 0, size = 0;
  void add(double term, double uncertainty) {
    value += term;
    size += uncertainty;
  }
  bool is(float got) const {
    if (!std::isfinite(value)) return !std::isfinite(got);
    return std::abs(got - value) <= 1e-5 * size + 1e-12;
  }
};

struct Problem {
  Case c;
  Floats x, dy, gamma, beta, other;

  explicit Problem(const Case& of) : c(of) {
    std::mt19937 random(static_cast<unsigned>(977 * c.rows + c.D));
    const auto draw = [&](std::size_t n, float center, float spread) {
      std::normal_distribution<float> normal(center, spread);
      Floats values(n);
      std::generate(values.begin(), values.end(), [&] { return normal(random); });
      return values;
    };
    x = draw(c.rows * c.D, c.center, c.spread);
    dy = draw(c.rows * c.D, 0.4f, 1);
    gamma = draw(c.D, 1, 0.4f);
    beta = draw(c.D, 0, 1);
    other = draw(c.rows * c.D, -3, 4);
    for (std::size_t i = 0; (c.features & kStrangeGamma) != 0 && i < c.D; i += 2)
      gamma[i] = i % 4 == 0 ? 0.0f : -50.0f;
    if ((c.features & kFlatRow) != 0) std::fill_n(x.begin(), c.D, 2.0f);
    if ((c.features & kNanRow) != 0) x[(c.rows - 1) * c.D + c.D / 2] = NAN;
  }

  // Compares dx row by row, and adds the row to the gradients of gamma and beta.
  bool row_is_right(std::size_t r, const float* dx, std::vector<Sum>& dgamma,
                    std::vector<Sum>& dbeta) const {
    const float *row = &x[r * c.D], *grad = &dy[r * c.D];
    const auto n = static_cast<double>(c.D);
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < c.D; ++i) mean += row[i];
    mean /= n;
    for (std::size_t i = 0; i < c.D; ++i) variance += std::pow(row[i] - mean, 2);
    const double rstd = 1 / std::sqrt(variance / n + c.eps);
    // fp32 rounds a row whose mean is large beside its spread.
    const double slack = 1 + 0.02 * std::abs(mean) * rstd;
    Sum of_g, of_gx;  // means
    for (std::size_t i = 0; i < c.D; ++i) {
      const double g = static_cast<double>(grad[i]) * gamma[i], hat = (row[i] - mean) * rstd;
      of_g.add(g / n, std::abs(g) / n);
      of_gx.add(g * hat / n, std::abs(g * hat) / n);
      dgamma[i].add(grad[i] * hat, std::abs(grad[i]) * (std::abs(hat) + slack));
      dbeta[i].add(grad[i], std::abs(grad[i]));
    }
    for (std::size_t i = 0; i < c.D; ++i) {
      const double g = static_cast<double>(grad[i]) * gamma[i], hat = (row[i] - mean) * rstd;
      Sum want;
      want.add(rstd * (g - of_g.value - hat * of_gx.value),
               rstd * slack * (std::abs(g) + of_g.size + std::abs(hat) * of_gx.size));
      if (!want.is(dx[i])) return false;
    }
    return true;
  }

  bool are_right(const Floats& dx, const Floats& dgamma, const Floats& dbeta) const {
    std::vector<Sum> want_gamma(c.D), want_beta(c.D);
    for (std::size_t r = 0; r < c.rows; ++r) {
      if (!row_is_right(r, &dx[r * c.D], want_gamma, want_beta)) return false;
    }
    for (std::size_t i = 0; i < c.D; ++i) {
      if (!want_gamma[i].is(dgamma[i]) || !want_beta[i].is(dbeta[i])) return false;
    }
    return true;
  }
};

bool passes(assay_ctx* ctx, const Case& c) {
  const Problem problem(c);
  const ln_params p{sizeof(p), ASSAY_F32, static_cast<std::int64_t>(c.rows),
                    static_cast<std::int64_t>(c.D), c.eps};
  const std::size_t cache_floats = ln_cache_bytes(&p) / sizeof(float) + 1;
  const Memory x(problem.x), dy(problem.dy), gamma(problem.gamma), beta(problem.beta),
      cache(cache_floats), y(problem.x.size()), dx(problem.x.size()), dgamma(c.D), dbeta(c.D);
  if (ln_forward(ctx, &p, x.get(), gamma.get(), beta.get(), y.get(), cache.get()) != ASSAY_OK)
    return false;
  const Memory other(problem.other), other_cache(cache_floats);
  if ((c.features & kForwardBetween) != 0 &&
      ln_forward(ctx, &p, other.get(), gamma.get(), beta.get(), y.get(), other_cache.get()) !=
          ASSAY_OK) {
    return false;
  }
  for (int calls = (c.features & kCallTwice) != 0 ? 2 : 1; calls > 0; --calls) {
    if (ln_backward(ctx, &p, dy.get(), x.get(), gamma.get(), cache.get(), dx.get(), dgamma.get(),
                    dbeta.get()) != ASSAY_OK) {
      return false;
    }
  }
  if (cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream)) != cudaSuccess) return false;
  return problem.are_right(dx.read(), dgamma.read(), dbeta.read());
}

// Sums of no rows are 0, and written.
bool no_rows(assay_ctx* ctx) {
  const ln_params p{sizeof(p), ASSAY_F32, 0, 5, 1e-5f};
  const Memory gamma(Floats(5, 1.0f)), cache(ln_cache_bytes(&p) / sizeof(float) + 1), dgamma(5),
      dbeta(5);
  if (ln_backward(ctx, &p, nullptr, nullptr, gamma.get(), cache.get(), nullptr, dgamma.get(),
                  dbeta.get()) != ASSAY_OK ||
      cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream)) != cudaSuccess) {
    return false;
  }
  const Floats zeros(5, 0.0f);
  return dgamma.read() == zeros && dbeta.read() == zeros;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  const Case cases[] = {
      {9, 64},
      {1, 37},
      {4, 2},
      {6, 3},
      {5, 1},
      {20, 7},
      {2, 1025},
      {5, 96, 1e4f},
      {5, 48, 0, 1e-3f},          // eps decides
      {5, 48, 0, 1e-3f, 1e-12f},  //
      {5, 48, 0, 0.5f, 0.5f},     //
      {5, 48, 0, 1, 1e-3f},       //
      {7, 40, 0, 1, 1e-5f, kStrangeGamma},
      {6, 32, 0, 1, 1e-5f, kCallTwice},
      {6, 32, 0, 1, 1e-5f, kForwardBetween},
      {3, 64, 0, 1, 1e-5f, kFlatRow},
      {3, 64, 0, 1, 1e-5f, kNanRow},
  };
  for (const Case& c : cases) {
    if (!passes(ctx, c)) return 1;
  }
  return no_rows(ctx) ? 0 : 1;
}
