// The fp64 arithmetic of one head, tile by tile, and conversions of stored values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "assay/size.h"
#include "assay/tolerance.h"
#include "attention.h"

namespace assay::attention {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

float lift(std::int32_t dtype, std::uint16_t x) {
  return dtype == ASSAY_BF16 ? bf16_to_float(x) : f16_to_float(x);
}

// Sums in blocks of 64, sequentially, as a plain tiled implementation adds.
float blocked_sum(const float* x, std::int64_t n) {
  float sum = 0;
  for (std::int64_t j = 0; j < n; j += 64) {
    sum += Eigen::Map<const Eigen::ArrayXf>(x + j, std::min<std::int64_t>(64, n - j)).sum();
  }
  return sum;
}

}  // namespace

float e4m3_to_float(std::uint8_t x) {
  const int exponent = x >> 3 & 15, fraction = x & 7;
  if (exponent == 15 && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -9)
                              : std::ldexp(static_cast<float>(fraction + 8), exponent - 10);
  return (x & 0x80) != 0 ? -magnitude : magnitude;
}

std::uint8_t float_to_e4m3(float f) {
  const int sign = std::signbit(f) ? 0x80 : 0;
  if (std::isnan(f)) return static_cast<std::uint8_t>(sign | 0x7f);
  const float a = std::min(std::abs(f), 448.0f);
  const int exponent = a < 0x1p-6f ? -6 : std::ilogb(a);
  // Eighths of the binade. 16 of them carry into the exponent; below 2^-6 there is no leading one.
  const int eighths = static_cast<int>(std::nearbyint(std::ldexp(a, 3 - exponent)));
  return static_cast<std::uint8_t>(sign | ((exponent + 6) * 8 + eighths));
}

RowsF head_rows(std::int32_t dtype, const void* data, std::int64_t first, std::int64_t step,
                std::int64_t N, std::int64_t D) {
  RowsF out(N, D);
  for (std::int64_t n = 0; n < N; ++n) {
    const std::int64_t at = first + n * step;
    if (dtype == ASSAY_F32) {
      std::copy_n(static_cast<const float*>(data) + at, D, out.data() + n * D);
    } else {
      const auto* x = static_cast<const std::uint16_t*>(data) + at;
      for (std::int64_t d = 0; d < D; ++d) out(n, d) = lift(dtype, x[d]);
    }
  }
  return out;
}

double widen(std::int32_t dtype, const void* data, std::int64_t at) {
  if (dtype == ASSAY_F32) return static_cast<double>(static_cast<const float*>(data)[at]);
  return static_cast<double>(lift(dtype, static_cast<const std::uint16_t*>(data)[at]));
}

float round_like(std::int32_t dtype, float x) {
  if (dtype == ASSAY_F32) return x;
  return dtype == ASSAY_BF16 ? bf16_to_float(float_to_bf16(x)) : f16_to_float(float_to_f16(x));
}

double storage_eps(std::int32_t dtype) {
  if (dtype == ASSAY_F32) return 0;
  return dtype == ASSAY_BF16 ? kEpsBf16 : kEpsF16;
}

Head load_head(const Problem& problem, std::int64_t b, std::int64_t h, BufferViews qkv,
               const Extras& extras) {
  const fa_params& p = problem.p;
  Head head;
  head.problem = &problem;
  head.b = b;
  head.h = h;
  head.queries = problem.queries_of(b);
  head.keys = problem.keys_of(b);
  head.bias = extras.bias;
  const std::int64_t kv = h / problem.group();
  const auto rows = [&](int t, std::int64_t at, std::int64_t step, std::int64_t N, std::int64_t D) {
    const void* data = qkv[to_size(t)].data;
    if (!problem.fp8) return head_rows(p.dtype, data, at, step, N, D);
    RowsF out(N, D);
    for (std::int64_t n = 0; n < N; ++n) {
      const std::uint8_t* x = static_cast<const std::uint8_t*>(data) + at + n * step;
      for (std::int64_t d = 0; d < D; ++d) out(n, d) = e4m3_to_float(x[d]) * extras.scales[t];
    }
    return out;
  };
  head.q = rows(0, problem.query_at(p.sq, b, h, 0), p.sq.n, head.queries, p.D);
  head.k = rows(1, problem.key_at(p.sk, b, kv, 0), p.sk.n, head.keys, p.D);
  head.v = rows(2, problem.key_at(p.sv, b, kv, 0), p.sv.n, head.keys, p.Dv);
  head.finite = tame(head.q) && tame(head.k) && tame(head.v);
  if (extras.alibi != nullptr) head.slope = extras.alibi[h];
  if (extras.sink != nullptr) head.sink = extras.sink[h];
  return head;
}

bool tame(const RowsF& m) { return m.size() == 0 || (m.array().abs() < 1e15f).all(); }

void make_tile(const Head& head, std::int64_t first, std::int64_t rows, const float* lse, Tile& t) {
  const Problem& problem = *head.problem;
  const fa_params& p = problem.p;
  t.first = first;
  t.rows = rows;
  t.range.clear();
  t.lo = head.keys;
  t.hi = 0;
  for (std::int64_t i = first; i < first + rows; ++i) {
    const Range r = visible(problem, i, head.queries, head.keys);
    t.range.push_back(r);
    if (r.lo >= r.hi) continue;
    t.lo = std::min(t.lo, r.lo);
    t.hi = std::max(t.hi, r.hi);
  }
  t.lo = std::min(t.lo, t.hi);
  const std::int64_t n = t.hi - t.lo;
  const auto q = head.q.middleRows(first, rows);
  const auto k = head.k.middleRows(t.lo, n);
  const auto scale = static_cast<double>(p.scale);
  t.p.noalias() = q.cast<double>() * k.cast<double>().transpose();
  t.p *= scale;
  t.p32.noalias() = q * k.transpose();
  t.p32 *= p.scale;
  const RowsF magnitude = (q.cwiseAbs() * k.cwiseAbs().transpose()) * std::abs(p.scale);
  if (problem.softcap > 0) {
    const double cap = problem.softcap;
    t.p /= cap;
    // 1 - tanh^2, without the cancellation that it suffers where tanh is near 1.
    t.slope = (t.p.array().abs() * -2).exp();
    t.slope = 4 * t.slope.array() / (1 + t.slope.array()).square();
    t.p = t.p.array().tanh() * cap;
    t.p32 = (t.p32.array() / problem.softcap).tanh() * problem.softcap;
  }
  const auto size = to_size(rows);
  t.lse.assign(size, -kInf);
  t.lse32.assign(size, -kInf);
  t.sum32.assign(size, 0);
  t.conditioning.assign(size, 0);
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto at = to_size(i);
    const Range r = t.range[at];
    const std::int64_t lo = r.lo - t.lo, m = std::max<std::int64_t>(r.hi - r.lo, 0);
    if (m == 0) {
      t.p.row(i).setZero();
      t.p32.row(i).setZero();
      if (problem.sink) t.lse[at] = t.lse32[at] = static_cast<double>(head.sink);
      continue;
    }
    double bias = 0;
    if (head.bias != nullptr) {
      const float* values =
          head.bias + problem.bias_row(head.b, head.h, first + i) * problem.bias_shape.Nk;
      for (std::int64_t j = 0; j < m; ++j) {
        const float x = values[problem.bias_column(r.lo + j)];
        t.p(i, lo + j) += static_cast<double>(x);
        t.p32(i, lo + j) += x;
        bias = std::max(bias, std::abs(static_cast<double>(x)));
      }
    }
    if (problem.alibi) {
      const std::int64_t diagonal = first + i + head.keys - head.queries;
      for (std::int64_t j = 0; j < m; ++j) {
        const auto distance = static_cast<double>(std::abs(diagonal - (r.lo + j)));
        t.p(i, lo + j) -= static_cast<double>(head.slope) * distance;
        t.p32(i, lo + j) -= head.slope * static_cast<float>(distance);
        bias = std::max(bias, std::abs(static_cast<double>(head.slope)) * distance);
      }
    }
    auto s = t.p.row(i).segment(lo, m);
    auto s32 = t.p32.row(i).segment(lo, m);
    t.conditioning[at] = static_cast<double>(magnitude.row(i).segment(lo, m).maxCoeff()) + bias;
    double max = s.maxCoeff<Eigen::PropagateNaN>();
    float max32 = s32.maxCoeff<Eigen::PropagateNaN>();
    if (problem.sink) {
      max = std::isnan(max) ? max : std::max(max, static_cast<double>(head.sink));
      max32 = std::isnan(max32) ? max32 : std::max(max32, head.sink);
    }
    s = (s.array() - max).exp();
    if (lse != nullptr) max32 = lse[first + i];
    s32 = (s32.array() - max32).exp();
    double sum = s.sum();
    float sum32 = blocked_sum(&t.p32(i, lo), m);
    if (problem.sink) {
      sum += std::exp(static_cast<double>(head.sink) - max);
      sum32 += std::exp(head.sink - max32);
    }
    s /= sum;
    t.lse[at] = max + std::log(sum);
    t.sum32[at] = static_cast<double>(sum32);
    t.lse32[at] = static_cast<double>(max32 + std::log(sum32));
    t.p.row(i).head(lo).setZero();
    t.p.row(i).tail(n - lo - m).setZero();
    t.p32.row(i).head(lo).setZero();
    t.p32.row(i).tail(n - lo - m).setZero();
  }
}

}  // namespace assay::attention
