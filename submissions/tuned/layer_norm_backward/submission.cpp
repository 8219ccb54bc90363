// Sample entrant of assay, not a model's answer: fast and correct, by plain loops that the compiler
// vectorises. Rows are shared among threads; each row is swept twice while it is in the cache; every
// thread keeps fp32 column sums of 32 rows at a time and adds them to fp64 ones. fp32 only, NULL outputs,
// fused residual, RMSNorm.
#include "abi.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr std::int64_t kLanes = 32, kRowsPerSum = 32;

struct Statistics {
  float mean, rstd;
};

int check(const ln_params* p) {
  if (p == nullptr || p->rows < 0 || p->D < 0 || !(p->eps >= 0)) return ASSAY_EINVAL;
  return p->dtype == ASSAY_F32 ? ASSAY_OK : ASSAY_ENOTSUP;
}

// Sum of term(i), in kLanes independent chains so that it vectorises without reordering by the compiler.
template <class Term>
double lane_sum(std::int64_t D, Term term) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= D; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
  }
  double sum = 0;
  for (const float lane : lanes) sum += lane;
  for (; i < D; ++i) sum += term(i);
  return sum;
}

Statistics statistics(const float* x, std::int64_t D, float eps, bool centred) {
  double mean = 0;
  if (centred) {
    const float shift = x[0];  // keeps the sums small for rows far from zero
    mean = shift + lane_sum(D, [=](std::int64_t i) { return x[i] - shift; }) / static_cast<double>(D);
  }
  const auto m = static_cast<float>(mean);
  double var = lane_sum(D, [=](std::int64_t i) { return (x[i] - m) * (x[i] - m); }) / static_cast<double>(D);
  var -= (mean - m) * (mean - m);
  if (!std::isfinite(var)) {  // squares beyond fp32
    mean = var = 0;
    for (std::int64_t i = 0; i < D && centred; ++i) mean += x[i] / static_cast<double>(D);
    for (std::int64_t i = 0; i < D; ++i) var += (x[i] - mean) * (x[i] - mean) / static_cast<double>(D);
    return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(var + eps))};
  }
  return {m, static_cast<float>(1 / std::sqrt(std::max(var, 0.0) + eps))};
}

template <class Work>
void share(const assay_ctx* ctx, const ln_params& p, Work work) {
  const auto threads = static_cast<int>(
      std::clamp<std::int64_t>(std::min(p.rows, p.rows * p.D >> 16), 1, std::max(ctx->nthreads, 1)));
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) {
    others.emplace_back([=, &p] { work(t, p.rows * t / threads, p.rows * (t + 1) / threads); });
  }
  work(0, std::int64_t{0}, p.rows / threads);
  for (auto& thread : others) thread.join();
}

struct Call {
  const ln_params& p;
  const float *dy, *x, *gamma;
  const Statistics* cache;  // NULL: RMSNorm, statistics are made here
  const float* dres;
  float* dx;
};

struct Sums {
  double *gamma, *beta;  // totals
  float *g, *b;          // of the latest rows
};

void one_row(const Call& c, std::int64_t r, const Sums& sums) {
  const std::int64_t D = c.p.D;
  const float* __restrict dy = c.dy + r * D;
  const float* __restrict x = c.x + r * D;
  const float* __restrict gamma = c.gamma;
  const Statistics s = c.cache != nullptr ? c.cache[r] : statistics(x, D, c.p.eps, false);
  float* __restrict g = sums.g;
  float* __restrict b = sums.b;
  for (std::int64_t i = 0; i < D; ++i) {
    g[i] += dy[i] * ((x[i] - s.mean) * s.rstd);
    b[i] += dy[i];
  }
  const double mean_g = c.cache == nullptr ? 0 : lane_sum(D, [=](std::int64_t i) { return dy[i] * gamma[i]; }) / static_cast<double>(D);
  const double mean_gx = lane_sum(D, [=](std::int64_t i) { return dy[i] * gamma[i] * ((x[i] - s.mean) * s.rstd); }) / static_cast<double>(D);
  if (c.dx == nullptr) return;
  float* __restrict dx = c.dx + r * D;
  const auto a = static_cast<float>(mean_g), m = static_cast<float>(mean_gx);
  if (c.dres == nullptr) {
    for (std::int64_t i = 0; i < D; ++i) dx[i] = s.rstd * (dy[i] * gamma[i] - a - (x[i] - s.mean) * s.rstd * m);
  } else {
    const float* __restrict dres = c.dres + r * D;
    for (std::int64_t i = 0; i < D; ++i) {
      dx[i] = s.rstd * (dy[i] * gamma[i] - a - (x[i] - s.mean) * s.rstd * m) + dres[i];
    }
  }
}

void flush(const Sums& s, std::int64_t D) {
  for (std::int64_t i = 0; i < D; ++i) {
    s.gamma[i] += s.g[i];
    s.beta[i] += s.b[i];
    s.g[i] = s.b[i] = 0;
  }
}

int backward(assay_ctx* ctx, const Call& c, float* dgamma, float* dbeta) {
  const std::int64_t D = c.p.D;
  if (c.p.rows * D > 0 && (c.dy == nullptr || c.x == nullptr || c.gamma == nullptr)) return ASSAY_EINVAL;
  const std::size_t each = static_cast<std::size_t>(D) * 24, threads = static_cast<std::size_t>(std::max(ctx->nthreads, 1));
  auto* memory = static_cast<char*>(ctx->alloc(ctx, each * threads + 64, 64, 0));
  if (memory == nullptr) return ASSAY_ENOMEM;
  std::memset(memory, 0, each * threads);
  const auto sums_of = [=](std::size_t t) {
    auto* d = reinterpret_cast<double*>(memory + t * each);
    auto* f = reinterpret_cast<float*>(d + 2 * D);
    return Sums{d, d + D, f, f + D};
  };
  if (D > 0) {
    share(ctx, c.p, [&](int t, std::int64_t begin, std::int64_t end) {
      const Sums sums = sums_of(static_cast<std::size_t>(t));
      for (std::int64_t r = begin; r < end; ++r) {
        one_row(c, r, sums);
        if ((r - begin + 1) % kRowsPerSum == 0) flush(sums, D);
      }
      flush(sums, D);
    });
  }
  for (std::int64_t i = 0; i < D; ++i) {
    double g = 0, b = 0;
    for (std::size_t t = 0; t < threads; ++t) {
      g += sums_of(t).gamma[i];
      b += sums_of(t).beta[i];
    }
    if (dgamma != nullptr) dgamma[i] = static_cast<float>(g);
    if (dbeta != nullptr) dbeta[i] = static_cast<float>(b);
  }
  ctx->free(ctx, memory);
  return ASSAY_OK;
}

const float* f32(const void* p) { return static_cast<const float*>(p); }

}  // namespace

extern "C" std::size_t ln_cache_bytes(const ln_params* p) {
  return check(p) == ASSAY_EINVAL ? 0 : static_cast<std::size_t>(p->rows) * sizeof(Statistics);
}

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma, const float* beta,
                          void* y, void* cache) {
  if (const int status = check(p); status != ASSAY_OK) return status;
  if (p->rows * p->D == 0) return ASSAY_OK;
  if (x == nullptr || gamma == nullptr || beta == nullptr || y == nullptr || cache == nullptr)
    return ASSAY_EINVAL;
  share(ctx, *p, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float* __restrict row = f32(x) + r * p->D;
      float* __restrict out = static_cast<float*>(y) + r * p->D;
      const Statistics s = static_cast<Statistics*>(cache)[r] = statistics(row, p->D, p->eps, true);
      for (std::int64_t i = 0; i < p->D; ++i) out[i] = (row[i] - s.mean) * s.rstd * gamma[i] + beta[i];
    }
  });
  return ASSAY_OK;
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x, const float* gamma,
                           const void* cache, void* dx, float* dgamma, float* dbeta) {
  if (const int status = check(p); status != ASSAY_OK) return status;
  if (cache == nullptr && p->rows > 0) return ASSAY_EINVAL;
  return backward(ctx, {*p, f32(dy), f32(x), gamma, static_cast<const Statistics*>(cache), nullptr, static_cast<float*>(dx)},
                  dgamma, dbeta);
}

extern "C" int ln_backward_residual(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                                    const float* gamma, const void* cache, const void* dres, void* dx, float* dgamma,
                                    float* dbeta) {
  if (const int status = check(p); status != ASSAY_OK) return status;
  if (cache == nullptr && p->rows > 0) return ASSAY_EINVAL;
  return backward(ctx, {*p, f32(dy), f32(x), gamma, static_cast<const Statistics*>(cache), f32(dres), static_cast<float*>(dx)},
                  dgamma, dbeta);
}

extern "C" int rms_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x, const float* gamma,
                            void* dx, float* dgamma) {
  if (const int status = check(p); status != ASSAY_OK) return status;
  return backward(ctx, {*p, f32(dy), f32(x), gamma, nullptr, nullptr, static_cast<float*>(dx)}, dgamma, nullptr);
}
