// Gradients in fp64, and a plain fp32 implementation for the tolerance: two passes per row, sums
// over rows in blocks of 64.
#include <algorithm>
#include <cmath>
#include <mutex>

#include "assay/parallel.h"
#include "assay/size.h"
#include "trusted.h"

namespace assay::layer_norm_backward {
namespace {

constexpr std::int64_t kBlock = 64;  // elements, and rows, per partial sum

// term(0) + ... + term(n - 1), in order within blocks, then over blocks. Several blocks advance
// together, because each addition waits for the previous one of its block.
template <class Term>
float blocked_sum32(std::int64_t n, Term term) {
  constexpr std::int64_t kTogether = 4;
  float sum = 0;
  std::int64_t i = 0;
  for (; i + kTogether * kBlock <= n; i += kTogether * kBlock) {
    float parts[kTogether] = {};
    for (std::int64_t j = i; j < i + kBlock; ++j) {
      for (std::int64_t k = 0; k < kTogether; ++k) parts[k] += term(j + k * kBlock);
    }
    for (const float part : parts) sum += part;
  }
  for (; i < n; i += kBlock) {
    float part = 0;
    for (std::int64_t j = i; j < std::min(i + kBlock, n); ++j) part += term(j);
    sum += part;
  }
  return sum;
}

void row_statistics(const Shape& s, const float* x, std::int64_t r, Gradients& g) {
  const auto D = static_cast<double>(s.D);
  const auto i = to_size(r);
  const bool centred = s.mode != kRms;
  double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < s.D; ++j) sum += x[j];
  const double mean = centred ? sum / D : 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t j = 0; j < s.D; ++j) squares += (x[j] - mean) * (x[j] - mean);
  g.mean[i] = mean;
  g.rstd[i] = 1 / std::sqrt(squares / D + static_cast<double>(s.eps));
  const float D32 = static_cast<float>(s.D);
  const float mean32 = centred ? blocked_sum32(s.D, [=](std::int64_t j) { return x[j]; }) / D32 : 0;
  const float squares32 = blocked_sum32(s.D, [=](std::int64_t j) {
    const float d = x[j] - mean32;
    return d * d;
  });
  g.mean32[i] = mean32;
  // An overflowing sum, which plain arithmetic cannot avoid, sets no standard for the rest.
  g.rstd32[i] = std::isinf(squares32) ? static_cast<float>(g.rstd[i])
                                      : 1.0f / std::sqrt(squares32 / D32 + s.eps);
}

constexpr std::int64_t kRowsTogether = 4;  // per visit of the column sums

// Column sums over some rows.
struct Partial {
  explicit Partial(std::int64_t D)
      : dgamma(to_size(D)),
        dbeta(dgamma),
        dgamma_scale(dgamma),
        dbeta_scale(dgamma),
        dgamma32(dgamma.size()),
        dbeta32(dgamma.size()) {}
  std::vector<double> dgamma, dbeta, dgamma_scale, dbeta_scale;
  std::vector<float> dgamma32, dbeta32;
};

double mean_condition(double mean, double rstd) { return 1 + kMeanShare * std::abs(mean) * rstd; }

// Adds kRows rows, with values at x[k] and dy[k]; in their order, but visiting the sums once.
template <int kRows>
void add_rows(const Gradients& g, std::int64_t first, const float* const* x, const float* const* dy,
              Partial& p) {
  struct Row {
    const float *x, *dy;
    double mean, rstd, share;
    float mean32, rstd32;
  } rows[kRows];
  for (int k = 0; k < kRows; ++k) {
    const auto i = to_size(first + k);
    const double share = kMeanShare * (1 + std::abs(g.mean[i]) * g.rstd[i]);
    rows[k] = {x[k], dy[k], g.mean[i], g.rstd[i], share, g.mean32[i], g.rstd32[i]};
  }
  const std::size_t D = p.dgamma.size();
  double *dgamma = p.dgamma.data(), *dbeta = p.dbeta.data();
  double *dgamma_scale = p.dgamma_scale.data(), *dbeta_scale = p.dbeta_scale.data();
  float *dgamma32 = p.dgamma32.data(), *dbeta32 = p.dbeta32.data();
#pragma omp simd
  for (std::size_t j = 0; j < D; ++j) {
    double a = dgamma[j], b = dbeta[j], a_scale = dgamma_scale[j], b_scale = dbeta_scale[j];
    float a32 = dgamma32[j], b32 = dbeta32[j];
#pragma GCC unroll 8
    for (int k = 0; k < kRows; ++k) {
      const Row& row = rows[k];
      const double d = row.dy[j], xhat = (row.x[j] - row.mean) * row.rstd, magnitude = std::abs(d);
      a += d * xhat;
      b += d;
      a_scale += magnitude * (std::abs(xhat) + row.share);
      b_scale += magnitude;
      a32 += row.dy[j] * ((row.x[j] - row.mean32) * row.rstd32);
      b32 += row.dy[j];
    }
    dgamma[j] = a;
    dbeta[j] = b;
    dgamma_scale[j] = a_scale;
    dbeta_scale[j] = b_scale;
    dgamma32[j] = a32;
    dbeta32[j] = b32;
  }
}

void add_to(const Partial& p, Gradients& g) {
  for (std::size_t j = 0; j < p.dgamma.size(); ++j) {
    g.dgamma[j] += p.dgamma[j];
    g.dbeta[j] += p.dbeta[j];
    g.dgamma_scale[j] += p.dgamma_scale[j];
    g.dbeta_scale[j] += p.dbeta_scale[j];
  }
}

}  // namespace

RowResult::RowResult(std::int64_t D)
    : x(to_size(D)), dy(x), dres(x), got(x.size()), expected(got), plain(got), scale(got) {}

const float* row_values(const Shape& s, BufferViews buffers, int handle, std::int64_t r,
                        std::vector<float>& scratch) {
  const BufferView& view = buffers[to_size(handle)];
  if (s.dtype == ASSAY_F32) return view.as<float>() + r * s.D;
  const std::uint16_t* row = view.as<std::uint16_t>() + r * s.D;
  for (std::int64_t i = 0; i < s.D; ++i) scratch[to_size(i)] = bf16_to_float(row[i]);
  return scratch.data();
}

std::unique_ptr<Gradients> make_reference(const Shape& s, BufferViews buffers) {
  auto g = std::make_unique<Gradients>();
  const auto rows = to_size(s.rows), D = to_size(s.D);
  for (auto* v : {&g->mean, &g->rstd}) v->resize(rows);
  for (auto* v : {&g->mean32, &g->rstd32}) v->resize(rows);
  for (auto* v :
       {&g->dgamma, &g->dbeta, &g->dgamma_scale, &g->dbeta_scale, &g->dgamma32, &g->dbeta32}) {
    v->resize(D);
  }
  std::vector<float> sum32_gamma(D), sum32_beta(D);
  std::mutex mutex;
  parallel_for((s.rows + kBlock - 1) / kBlock, 1, [&](std::int64_t begin, std::int64_t end) {
    Partial total(s.D);
    std::vector<float> total32_gamma(D), total32_beta(D);
    std::vector<std::vector<float>> scratch(2 * kRowsTogether, std::vector<float>(D));
    for (std::int64_t block = begin; block < end; ++block) {
      std::fill(total.dgamma32.begin(), total.dgamma32.end(), 0.0f);
      std::fill(total.dbeta32.begin(), total.dbeta32.end(), 0.0f);
      const std::int64_t block_end = std::min((block + 1) * kBlock, s.rows);
      for (std::int64_t r = block * kBlock; r < block_end; r += kRowsTogether) {
        const std::int64_t n = std::min(kRowsTogether, block_end - r);
        const float *x[kRowsTogether], *dy[kRowsTogether];
        for (std::int64_t k = 0; k < n; ++k) {
          x[k] = row_values(s, buffers, kX, r + k, scratch[to_size(2 * k)]);
          dy[k] = row_values(s, buffers, kDy, r + k, scratch[to_size(2 * k + 1)]);
          row_statistics(s, x[k], r + k, *g);
        }
        if (n == kRowsTogether) {
          add_rows<kRowsTogether>(*g, r, x, dy, total);
        } else {
          for (std::int64_t k = 0; k < n; ++k) add_rows<1>(*g, r + k, x + k, dy + k, total);
        }
      }
      for (std::size_t j = 0; j < D; ++j) {
        total32_gamma[j] += total.dgamma32[j];
        total32_beta[j] += total.dbeta32[j];
      }
    }
    const std::lock_guard lock(mutex);
    add_to(total, *g);
    for (std::size_t j = 0; j < D; ++j) {
      sum32_gamma[j] += total32_gamma[j];
      sum32_beta[j] += total32_beta[j];
    }
  });
  std::copy(sum32_gamma.begin(), sum32_gamma.end(), g->dgamma32.begin());
  std::copy(sum32_beta.begin(), sum32_beta.end(), g->dbeta32.begin());
  return g;
}

void dx_row(const Shape& s, const Gradients& g, BufferViews buffers, std::int64_t r,
            RowResult& row) {
  const auto i = to_size(r);
  const float* gamma = buffers[kGamma].as<float>();
  const float* x = row_values(s, buffers, kX, r, row.x);
  const float* dy = row_values(s, buffers, kDy, r, row.dy);
  const double mean = g.mean[i], rstd = g.rstd[i];
  const float mean32 = g.mean32[i], rstd32 = g.rstd32[i];
  // Sums over the row of g and of g xhat, the sums of their magnitudes, and the sums in fp32.
  double sum = 0, along = 0, sum_scale = 0, along_scale = 0;
  float sum32 = 0, along32 = 0;
#pragma omp simd reduction(+ : sum, along, sum_scale, along_scale, sum32, along32)
  for (std::int64_t j = 0; j < s.D; ++j) {
    const double gs = static_cast<double>(dy[j]) * gamma[j], gx = gs * ((x[j] - mean) * rstd);
    sum += gs;
    along += gx;
    sum_scale += std::abs(gs);
    along_scale += std::abs(gx);
    const float gs32 = dy[j] * gamma[j];
    sum32 += gs32;
    along32 += gs32 * ((x[j] - mean32) * rstd32);
  }
  const auto D = static_cast<double>(s.D);
  const auto D32 = static_cast<float>(s.D);
  const bool centred = s.mode != kRms;
  const double average = centred ? sum / D : 0, projection = along / D;
  const double average_scale = sum_scale / D, projection_scale = along_scale / D;
  const float average32 = centred ? sum32 / D32 : 0, projection32 = along32 / D32;
  const double factor = rstd * mean_condition(mean, rstd);
  double *expected = row.expected.data(), *plain = row.plain.data(), *scale = row.scale.data();
#pragma omp simd
  for (std::int64_t j = 0; j < s.D; ++j) {
    const double gs = static_cast<double>(dy[j]) * gamma[j], xhat = (x[j] - mean) * rstd;
    expected[j] = rstd * (gs - average - xhat * projection);
    scale[j] = factor * (std::abs(gs) + average_scale + std::abs(xhat) * projection_scale);
    const float xhat32 = (x[j] - mean32) * rstd32;
    plain[j] = rstd32 * (dy[j] * gamma[j] - average32 - xhat32 * projection32);
  }
  if (s.mode != kResidual) return;
  const float* dres = row_values(s, buffers, kDres, r, row.dres);
  for (std::int64_t j = 0; j < s.D; ++j) {
    expected[j] += dres[j];
    plain[j] += dres[j];
    scale[j] += std::abs(static_cast<double>(dres[j]));
  }
}

void y_row(const Shape& s, const Gradients& g, BufferViews buffers, std::int64_t r,
           RowResult& row) {
  const auto i = to_size(r);
  const float* x = row_values(s, buffers, kX, r, row.x);
  const float *gamma = buffers[kGamma].as<float>(), *beta = buffers[kBeta].as<float>();
  const double condition = mean_condition(g.mean[i], g.rstd[i]);
  for (std::size_t j = 0; j < row.expected.size(); ++j) {
    const double xhat = (x[j] - g.mean[i]) * g.rstd[i];
    row.expected[j] = xhat * gamma[j] + beta[j];
    row.plain[j] = (x[j] - g.mean32[i]) * g.rstd32[i] * gamma[j] + beta[j];
    row.scale[j] = std::abs(gamma[j]) * (std::abs(xhat) + condition) + std::abs(beta[j]);
  }
}

}  // namespace assay::layer_norm_backward
