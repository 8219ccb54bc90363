// Judges rows of dx and y by the common rule; dgamma and dbeta as one row each, by the fp32 rule
// even for bf16.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "assay/parallel.h"
#include "assay/size.h"
#include "assay/tolerance.h"
#include "trusted.h"

namespace assay::layer_norm_backward {
namespace {

using RowFunction = void (*)(const Shape&, const Gradients&, BufferViews, std::int64_t, RowResult&);

// bf16 results may differ from fp64 by the final rounding, so the plain result is rounded too.
void round_plain(const Shape& s, RowResult& row) {
  if (s.dtype != ASSAY_BF16) return;
  for (double& v : row.plain) v = bf16_to_float(float_to_bf16(static_cast<float>(v)));
}

// Admits plain sums over a row in 8 or more lanes: if terms are about equal, their roundings go the
// same way, and an error in a mean or an rstd moves the whole row.
double row_sum_share(const Shape& s) { return static_cast<double>(s.D) / 128; }

void check_matrix(const CaseSpec& spec, const Shape& s, const Gradients& g, BufferViews buffers,
                  Handle handle, const char* name, RowFunction make, CheckResult& result) {
  if (buffers[handle].bytes == 0) return;
  const double c = spec.params.value("C", 32.0) + row_sum_share(s);
  const bool bf16 = s.dtype == ASSAY_BF16;
  const ToleranceRule rule{bf16 ? 2.0 : 4.0, bf16 ? kEpsBf16 : c * kEps32};
  RowJudge all(name, rule);
  std::mutex mutex;
  parallel_for(s.rows, std::max<std::int64_t>(1, 4096 / s.D),
               [&](std::int64_t begin, std::int64_t end) {
                 RowJudge judge(name, rule);
                 RowResult row(s.D);
                 for (std::int64_t r = begin; r < end; ++r) {
                   const bool unspecified = !std::isfinite(g.rstd[to_size(r)]) && s.eps == 0;
                   if (unspecified) continue;  // var + eps == 0
                   make(s, g, buffers, r, row);
                   round_plain(s, row);
                   const float* got = row_values(s, buffers, handle, r, row.x);
                   std::copy(got, got + s.D, row.got.begin());
                   judge.row(r, row.got, row.expected, row.plain, row.scale);
                 }
                 const std::lock_guard lock(mutex);
                 all.merge(judge);
               });
  all.add_to(result);
}

// `share`: extra share of C for errors of the terms.
void check_sum(const CaseSpec& spec, const Shape& s, BufferViews buffers, Handle handle,
               const char* name, const std::vector<double>& expected,
               const std::vector<double>& plain, const std::vector<double>& scale, double share,
               CheckResult& result) {
  if (buffers[handle].bytes == 0) return;
  const double c = spec.params.value("C", 32.0) + share +
                   4 * std::log2(std::max<double>(static_cast<double>(s.rows), 1));
  RowJudge judge(name, {4.0, c * kEps32});
  const auto got = buffers[handle].span<float>();
  judge.row(0, std::vector<double>(got.begin(), got.end()), expected, plain, scale);
  judge.add_to(result);
}

void check_cache(const Shape& s, BufferViews buffers, CheckResult& result) {
  if (buffers[kCacheBytes].bytes == 0) return;
  const std::int64_t bytes = *buffers[kCacheBytes].as<std::int64_t>();
  if (bytes < 0 || bytes > cache_capacity(s.rows)) {
    return fail(result, fmt::format("cache of {} bytes for {} rows", bytes, s.rows));
  }
  if (s.rows > 0) {
    result.metrics.push_back(
        {"cache_bytes_per_row", static_cast<double>(bytes) / static_cast<double>(s.rows)});
  }
}

}  // namespace

CheckResult check_outputs(const CaseSpec& spec, const Gradients& g, BufferViews buffers) {
  const Shape s = shape_of(spec);
  CheckResult result;
  check_cache(s, buffers, result);
  if (s.D == 0) return result;
  check_matrix(spec, s, g, buffers, kDx, "dx", &dx_row, result);
  check_sum(spec, s, buffers, kDgamma, "dgamma", g.dgamma, g.dgamma32, g.dgamma_scale,
            row_sum_share(s), result);
  check_sum(spec, s, buffers, kDbeta, "dbeta", g.dbeta, g.dbeta32, g.dbeta_scale, 0, result);
  // y is checked if it is what the last forward call wrote. Not at every timed repetition, since
  // the forward is not what is timed.
  const bool y = s.mode != kOlderCache && s.mode != kRms && spec.group != CaseGroup::timed;
  if (y) check_matrix(spec, s, g, buffers, kY, "y", &y_row, result);
  return result;
}

}  // namespace assay::layer_norm_backward
