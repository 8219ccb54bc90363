// The plain implementation: one thread, fp64 sums, a pass per quantity. The cache is mean and
// reciprocal standard deviation of every row, fp32.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "abi.h"

namespace {

struct Statistics {
  float mean, rstd;
};

float load(const void* p, std::int32_t dtype, std::int64_t i) {
  if (dtype == ASSAY_F32) return static_cast<const float*>(p)[i];
  return std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(p)[i])
                              << 16);
}

void store(void* p, std::int32_t dtype, std::int64_t i, float value) {
  if (dtype == ASSAY_F32) {
    static_cast<float*>(p)[i] = value;
    return;
  }
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded =
      std::isnan(value) ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1u);
  static_cast<std::uint16_t*>(p)[i] = static_cast<std::uint16_t>(rounded >> 16);
}

bool valid(const ln_params* p) {
  return p != nullptr && p->size == sizeof(ln_params) && p->rows >= 0 && p->D >= 0 && p->eps >= 0;
}

int check(const ln_params* p, bool pointers_present) {
  if (!valid(p)) return ASSAY_EINVAL;
  if (p->rows * p->D > 0 && !pointers_present) return ASSAY_EINVAL;
  return p->dtype == ASSAY_F32 || p->dtype == ASSAY_BF16 ? ASSAY_OK : ASSAY_ENOTSUP;
}

Statistics statistics(const ln_params& p, const void* x, std::int64_t row) {
  double mean = 0, var = 0;
  for (std::int64_t i = 0; i < p.D; ++i) mean += load(x, p.dtype, row * p.D + i);
  mean /= static_cast<double>(p.D);
  for (std::int64_t i = 0; i < p.D; ++i) {
    const double d = load(x, p.dtype, row * p.D + i) - mean;
    var += d * d;
  }
  var /= static_cast<double>(p.D);
  return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(var + p.eps))};
}

struct Gradients {
  void* dx;
  double* dgamma;  // [D] sums, or null
  double* dbeta;
};

void row_backward(const ln_params& p, const void* dy, const void* x, const float* gamma,
                  Statistics s, const void* dres, Gradients out, std::int64_t row) {
  double mean_g = 0, mean_gx = 0;
  for (std::int64_t i = 0; i < p.D; ++i) {
    const std::int64_t at = row * p.D + i;
    const double xhat = (static_cast<double>(load(x, p.dtype, at)) - s.mean) * s.rstd;
    const double d = load(dy, p.dtype, at), g = d * gamma[i];
    mean_g += g;
    mean_gx += g * xhat;
    if (out.dgamma != nullptr) out.dgamma[i] += d * xhat;
    if (out.dbeta != nullptr) out.dbeta[i] += d;
  }
  mean_g /= static_cast<double>(p.D);
  mean_gx /= static_cast<double>(p.D);
  for (std::int64_t i = 0; out.dx != nullptr && i < p.D; ++i) {
    const std::int64_t at = row * p.D + i;
    const double xhat = (static_cast<double>(load(x, p.dtype, at)) - s.mean) * s.rstd;
    const double g = static_cast<double>(load(dy, p.dtype, at)) * gamma[i];
    const double residual = dres != nullptr ? load(dres, p.dtype, at) : 0.0f;
    store(out.dx, p.dtype, at,
          static_cast<float>(s.rstd * (g - mean_g - xhat * mean_gx) + residual));
  }
}

int backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x, const float* gamma,
             const void* cache, const void* dres, void* dx, float* dgamma, float* dbeta) {
  const bool present = dy != nullptr && x != nullptr && gamma != nullptr && cache != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(p->D, 1)) * sizeof(double);
  auto* sums = static_cast<double*>(ctx->alloc(ctx, 2 * bytes, 64, 0));
  if (sums == nullptr) return ASSAY_ENOMEM;
  std::fill(sums, sums + 2 * p->D, 0.0);
  const Gradients out{dx, dgamma != nullptr ? sums : nullptr,
                      dbeta != nullptr ? sums + p->D : nullptr};
  const auto* statistics = static_cast<const Statistics*>(cache);
  for (std::int64_t row = 0; p->D > 0 && row < p->rows; ++row) {
    row_backward(*p, dy, x, gamma, statistics[row], dres, out, row);
  }
  for (std::int64_t i = 0; i < p->D; ++i) {
    if (dgamma != nullptr) dgamma[i] = static_cast<float>(sums[i]);
    if (dbeta != nullptr) dbeta[i] = static_cast<float>(sums[p->D + i]);
  }
  ctx->free(ctx, sums);
  return ASSAY_OK;
}

}  // namespace

extern "C" std::size_t ln_cache_bytes(const ln_params* p) {
  return valid(p) ? static_cast<std::size_t>(p->rows) * sizeof(Statistics) : 0;
}

extern "C" int ln_forward(assay_ctx*, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  const bool present =
      x != nullptr && gamma != nullptr && beta != nullptr && y != nullptr && cache != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  for (std::int64_t row = 0; p->D > 0 && row < p->rows; ++row) {
    const Statistics s = statistics(*p, x, row);
    static_cast<Statistics*>(cache)[row] = s;
    for (std::int64_t i = 0; i < p->D; ++i) {
      const std::int64_t at = row * p->D + i;
      const double xhat = (static_cast<double>(load(x, p->dtype, at)) - s.mean) * s.rstd;
      store(y, p->dtype, at, static_cast<float>(xhat * gamma[i] + beta[i]));
    }
  }
  return ASSAY_OK;
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  return backward(ctx, p, dy, x, gamma, cache, nullptr, dx, dgamma, dbeta);
}

extern "C" int ln_backward_residual(assay_ctx* ctx, const ln_params* p, const void* dy,
                                    const void* x, const float* gamma, const void* cache,
                                    const void* dres, void* dx, float* dgamma, float* dbeta) {
  if (valid(p) && p->rows * p->D > 0 && dres == nullptr) return ASSAY_EINVAL;
  return backward(ctx, p, dy, x, gamma, cache, dres, dx, dgamma, dbeta);
}

extern "C" int rms_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                            const float* gamma, void* dx, float* dgamma) {
  if (const int status = check(p, dy != nullptr && x != nullptr && gamma != nullptr);
      status != ASSAY_OK) {
    return status;
  }
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(p->D, 1)) * sizeof(double);
  auto* const sums = static_cast<double*>(ctx->alloc(ctx, bytes, 64, 0));
  if (sums == nullptr) return ASSAY_ENOMEM;
  std::fill(sums, sums + p->D, 0.0);
  for (std::int64_t row = 0; p->D > 0 && row < p->rows; ++row) {
    double square = 0, gx = 0;
    for (std::int64_t i = 0; i < p->D; ++i) {
      const std::int64_t at = row * p->D + i;
      const double v = load(x, p->dtype, at);
      square += v * v;
      gx += static_cast<double>(load(dy, p->dtype, at)) * gamma[i] * v;
    }
    const double q = 1 / std::sqrt(square / static_cast<double>(p->D) + p->eps);
    const double projection = q * q * gx / static_cast<double>(p->D);
    for (std::int64_t i = 0; i < p->D; ++i) {
      const std::int64_t at = row * p->D + i;
      const double v = load(x, p->dtype, at), d = load(dy, p->dtype, at);
      sums[i] += d * v * q;
      if (dx != nullptr)
        store(dx, p->dtype, at, static_cast<float>(q * (d * gamma[i] - v * projection)));
    }
  }
  for (std::int64_t i = 0; dgamma != nullptr && i < p->D; ++i)
    dgamma[i] = static_cast<float>(sums[i]);
  ctx->free(ctx, sums);
  return ASSAY_OK;
}
