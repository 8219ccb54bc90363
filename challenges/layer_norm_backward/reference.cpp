// Gradients in fp64, and a plain fp32 implementation for the tolerance: two passes a row, sums over
// rows in blocks of 64.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <mutex>

#include "assay/parallel.h"
#include "layer_norm.h"

namespace assay::layer_norm_backward {
namespace {

using ArrayD = Eigen::Map<Eigen::ArrayXd>;
using ConstArrayD = Eigen::Map<const Eigen::ArrayXd>;

constexpr std::int64_t kBlock = 64;  // rows per partial sum

ArrayD map(std::vector<double>& v) { return {v.data(), static_cast<Eigen::Index>(v.size())}; }

float sequential_sum32(const double* v, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; i += kBlock) {
    float part = 0;
    for (std::int64_t j = i; j < std::min(i + kBlock, n); ++j) part += static_cast<float>(v[j]);
    sum += part;
  }
  return sum;
}

void row_statistics(const Shape& s, std::vector<double>& x, std::int64_t r, Gradients& g) {
  const auto a = map(x);
  const auto D = static_cast<double>(s.D);
  const auto i = static_cast<std::size_t>(r);
  const double mean = s.mode == kRms ? 0 : a.sum() / D;
  g.mean[i] = mean;
  g.rstd[i] = 1 / std::sqrt((a - mean).square().sum() / D + static_cast<double>(s.eps));
  const float mean32 = s.mode == kRms ? 0 : sequential_sum32(x.data(), s.D) / static_cast<float>(s.D);
  float var32 = 0;
  for (std::int64_t b = 0; b < s.D; b += kBlock) {
    float part = 0;
    for (std::int64_t j = b; j < std::min(b + kBlock, s.D); ++j) {
      const float d = static_cast<float>(x[static_cast<std::size_t>(j)]) - mean32;
      part += d * d;
    }
    var32 += part;
  }
  g.mean32[i] = mean32;
  g.rstd32[i] = 1.0f / std::sqrt(var32 / static_cast<float>(s.D) + s.eps);
}

// Column sums over some rows.
struct Partial {
  explicit Partial(std::int64_t D)
      : dgamma(static_cast<std::size_t>(D)), dbeta(dgamma), dgamma_scale(dgamma), dbeta_scale(dgamma),
        dgamma32(dgamma.size()), dbeta32(dgamma.size()) {}
  std::vector<double> dgamma, dbeta, dgamma_scale, dbeta_scale;
  std::vector<float> dgamma32, dbeta32;
};

double mean_condition(double mean, double rstd) { return 1 + kMeanShare * std::abs(mean) * rstd; }

void add_row(const Gradients& g, std::int64_t r, const std::vector<double>& x,
             const std::vector<double>& dy, Partial& p) {
  const auto i = static_cast<std::size_t>(r);
  const double mean = g.mean[i], rstd = g.rstd[i], share = kMeanShare * (1 + std::abs(mean) * rstd);
  const float mean32 = g.mean32[i], rstd32 = g.rstd32[i];
  const std::size_t D = x.size();
  for (std::size_t j = 0; j < D; ++j) {
    const double xhat = (x[j] - mean) * rstd, magnitude = std::abs(dy[j]);
    p.dgamma[j] += dy[j] * xhat;
    p.dbeta[j] += dy[j];
    p.dgamma_scale[j] += magnitude * (std::abs(xhat) + share);
    p.dbeta_scale[j] += magnitude;
    const auto dy32 = static_cast<float>(dy[j]);
    p.dgamma32[j] += dy32 * ((static_cast<float>(x[j]) - mean32) * rstd32);
    p.dbeta32[j] += dy32;
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

// dx (or y) of one row for given statistics, computed in type T.
template <class T>
void dx_values(const Shape& s, const std::vector<double>& x, const std::vector<double>& dy,
               const float* gamma, double mean, double rstd, std::vector<double>& out) {
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  const auto n = static_cast<Eigen::Index>(s.D);
  const Array gs = ConstArrayD(dy.data(), n).cast<T>() * Eigen::Map<const Eigen::ArrayXf>(gamma, n).cast<T>();
  const Array xhat = (ConstArrayD(x.data(), n).cast<T>() - static_cast<T>(mean)) * static_cast<T>(rstd);
  const T projection = (gs * xhat).sum() / static_cast<T>(s.D);
  const T average = s.mode == kRms ? T{0} : gs.sum() / static_cast<T>(s.D);
  map(out) = (static_cast<T>(rstd) * (gs - average - xhat * projection)).template cast<double>();
}

}  // namespace

RowResult::RowResult(std::int64_t D)
    : x(static_cast<std::size_t>(D)), dy(x), dres(x), got(x), expected(x), plain(x), scale(x) {}

void load_row(const Shape& s, BufferViews buffers, int handle, std::int64_t r,
              std::vector<double>& out) {
  const BufferView& view = buffers[static_cast<std::size_t>(handle)];
  for (std::int64_t i = 0; i < s.D; ++i) {
    out[static_cast<std::size_t>(i)] = s.dtype == ASSAY_F32
                                           ? static_cast<double>(view.as<float>()[r * s.D + i])
                                           : bf16_to_float(view.as<std::uint16_t>()[r * s.D + i]);
  }
}

std::unique_ptr<Gradients> make_reference(const Shape& s, BufferViews buffers) {
  auto g = std::make_unique<Gradients>();
  const auto rows = static_cast<std::size_t>(s.rows), D = static_cast<std::size_t>(s.D);
  for (auto* v : {&g->mean, &g->rstd}) v->resize(rows);
  for (auto* v : {&g->mean32, &g->rstd32}) v->resize(rows);
  for (auto* v : {&g->dgamma, &g->dbeta, &g->dgamma_scale, &g->dbeta_scale, &g->dgamma32, &g->dbeta32}) {
    v->resize(D);
  }
  std::vector<float> sum32_gamma(D), sum32_beta(D);
  std::mutex mutex;
  parallel_for((s.rows + kBlock - 1) / kBlock, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> x(D), dy(D);
    Partial total(s.D);
    std::vector<float> total32_gamma(D), total32_beta(D);
    for (std::int64_t block = begin; block < end; ++block) {
      std::fill(total.dgamma32.begin(), total.dgamma32.end(), 0.0f);
      std::fill(total.dbeta32.begin(), total.dbeta32.end(), 0.0f);
      for (std::int64_t r = block * kBlock; r < std::min((block + 1) * kBlock, s.rows); ++r) {
        load_row(s, buffers, kX, r, x);
        load_row(s, buffers, kDy, r, dy);
        row_statistics(s, x, r, *g);
        add_row(*g, r, x, dy, total);
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

void dx_row(const Shape& s, const Gradients& g, BufferViews buffers, std::int64_t r, RowResult& row) {
  const auto i = static_cast<std::size_t>(r);
  const float* gamma = buffers[kGamma].as<float>();
  load_row(s, buffers, kX, r, row.x);
  load_row(s, buffers, kDy, r, row.dy);
  dx_values<double>(s, row.x, row.dy, gamma, g.mean[i], g.rstd[i], row.expected);
  dx_values<float>(s, row.x, row.dy, gamma, g.mean32[i], g.rstd32[i], row.plain);
  const auto n = static_cast<Eigen::Index>(s.D);
  const Eigen::ArrayXd gs =
      (ConstArrayD(row.dy.data(), n) * Eigen::Map<const Eigen::ArrayXf>(gamma, n).cast<double>()).abs();
  const Eigen::ArrayXd xhat = ((ConstArrayD(row.x.data(), n) - g.mean[i]) * g.rstd[i]).abs();
  const auto D = static_cast<double>(s.D);
  map(row.scale) = g.rstd[i] * mean_condition(g.mean[i], g.rstd[i]) *
                   (gs + gs.sum() / D + xhat * ((gs * xhat).sum() / D));
  if (s.mode != kResidual) return;
  load_row(s, buffers, kDres, r, row.dres);
  map(row.expected) += map(row.dres);
  map(row.plain) += map(row.dres);
  map(row.scale) += map(row.dres).abs();
}

void y_row(const Shape& s, const Gradients& g, BufferViews buffers, std::int64_t r, RowResult& row) {
  const auto i = static_cast<std::size_t>(r);
  load_row(s, buffers, kX, r, row.x);
  for (std::size_t j = 0; j < row.x.size(); ++j) {
    const float gamma = buffers[kGamma].as<float>()[j], beta = buffers[kBeta].as<float>()[j];
    const double xhat = (row.x[j] - g.mean[i]) * g.rstd[i];
    row.expected[j] = xhat * gamma + beta;
    row.plain[j] = (static_cast<float>(row.x[j]) - g.mean32[i]) * g.rstd32[i] * gamma + beta;
    row.scale[j] = std::abs(gamma) * (std::abs(xhat) + mean_condition(g.mean[i], g.rstd[i])) + std::abs(beta);
  }
}

}  // namespace assay::layer_norm_backward
