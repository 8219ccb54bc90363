// Judges each gradient row by row; rows are those of dq, dk and dv.
#include <cmath>
#include <mutex>

#include "assay/parallel.h"
#include "assay/size.h"
#include "assay/tolerance.h"
#include "shared/log_sum_exp.h"
#include "trusted.h"

namespace assay::flash_attention_bwd {
namespace {

using attention::Problem;

struct Output {
  const char* name;
  int handle;
  assay_stride stride;
  std::int64_t H, N, D;
  bool of_keys;        // rows are keys, else queries
  double half_factor;  // times the plain implementation's error, in bf16 and f16
  double rounding;     // multiplies the allowed units of roundoff
};

// One row of one gradient, starting at element `at`.
struct Row {
  const Gradient* gradient;
  std::int64_t n, at;
};

std::vector<Row> rows_of(const Problem& problem, const Output& out,
                         const std::vector<Gradient>& all) {
  std::vector<Row> rows;
  for (std::size_t head = 0; head < all.size(); ++head) {
    const std::int64_t b = static_cast<std::int64_t>(head) / out.H,
                       h = static_cast<std::int64_t>(head) % out.H;
    for (std::int64_t n = 0; n < all[head].expected.rows(); ++n) {
      const std::int64_t at =
          out.of_keys ? problem.key_at(out.stride, b, h, n) : problem.query_at(out.stride, b, h, n);
      rows.push_back({&all[head], n, at});
    }
  }
  return rows;
}

void check_gradient(const Problem& problem, const Output& out, const std::vector<Gradient>& all,
                    BufferViews buffers, CheckResult& result) {
  const BufferView& view = buffers[to_size(out.handle)];
  const std::int32_t dtype = problem.p.dtype;
  RowJudge worst(out.name, {});
  std::mutex mutex;
  const std::vector<Row> rows = rows_of(problem, out, all);
  parallel_for(static_cast<std::int64_t>(rows.size()), 64,
               [&](std::int64_t begin, std::int64_t end) {
                 RowJudge mine(out.name, {});
                 std::vector<double> got(to_size(out.D));
                 for (std::int64_t row = begin; row < end; ++row) {
                   const auto& [gradient, n, at] = rows[to_size(row)];
                   const Gradient& g = *gradient;
                   for (std::int64_t d = 0; d < out.D; ++d)
                     got[to_size(d)] = attention::widen(dtype, view.data, at + d);
                   const double floor = out.rounding * g.factor[to_size(n)] * kEps32 +
                                        out.half_factor * attention::storage_eps(dtype);
                   RowJudge judge(out.name, {dtype == ASSAY_F32 ? 4.0 : out.half_factor, floor});
                   const auto part = [&, n = n](const attention::RowsD& m) {
                     return std::span<const double>(m.data() + n * out.D, got.size());
                   };
                   judge.row(row, got, part(g.expected), part(g.plain), part(g.scale));
                   mine.merge(judge);
                 }
                 const std::lock_guard lock(mutex);
                 worst.merge(mine);
               });
  worst.add_to(result);
  if (result.pass)
    attention::check_gaps(problem, out.stride, out.H, out.N, out.D, view, out.name, result);
}

void check_lse(const Problem& problem, const std::vector<Gradient>& all, const BufferView& view,
               CheckResult& result) {
  RowJudge judge("lse", {});
  const fa_params& p = problem.p;
  for (std::int64_t row = 0; row < p.B * p.Hq * p.Nq; ++row) {
    const Gradient& g = all[to_size(row / p.Nq)];
    const double lse = g.expected(row % p.Nq, 0);
    judge_log_sum_exp("lse", row, static_cast<double>(view.as<float>()[row]), lse, lse,
                      g.factor[to_size(row % p.Nq)] * kEps32, judge);
  }
  judge.add_to(result);
}

void check_dbias(const Gradient& g, const BufferView& view, CheckResult& result) {
  RowJudge judge("dbias", {});
  const std::int64_t D = g.expected.cols();
  for (std::int64_t row = 0; row < g.expected.rows(); ++row) {
    const float* first = view.as<float>() + row * D;
    const std::vector<double> got(first, first + D);
    const auto part = [&](const attention::RowsD& m) {
      return std::span<const double>(m.data() + row * D, got.size());
    };
    RowJudge mine("dbias", {4.0, g.factor[to_size(row)] * kEps32});
    mine.row(row, got, part(g.expected), part(g.plain), part(g.scale));
    judge.merge(mine);
  }
  judge.add_to(result);
}

}  // namespace

CheckResult check_outputs(const Problem& problem, const BackwardReference& reference,
                          BufferViews buffers) {
  const fa_params& p = problem.p;
  const fa_params flat = problem.flat().p;
  CheckResult result;
  // The roundings of the submission's own forward pass add to those of its backward pass.
  const bool chained = !reference.o.empty();
  const double rounding = chained ? 2 : 1;
  if (chained) {
    check_gradient(problem, {"o", kO, p.so, p.Hq, flat.Nq, p.Dv, false, 2, 1}, reference.o, buffers,
                   result);
    check_lse(problem, reference.lse, buffers[kLse], result);
  }
  check_gradient(problem, {"dv", kDv, p.sv, p.Hkv, flat.Nk, p.Dv, true, 2, rounding}, reference.dv,
                 buffers, result);
  check_gradient(problem, {"dq", kDq, p.sq, p.Hq, flat.Nq, p.D, false, 3, rounding}, reference.dq,
                 buffers, result);
  check_gradient(problem, {"dk", kDk, p.sk, p.Hkv, flat.Nk, p.D, true, 3, rounding}, reference.dk,
                 buffers, result);
  if (buffers[kDbias].bytes != 0) check_dbias(reference.dbias.at(0), buffers[kDbias], result);
  return result;
}

}  // namespace assay::flash_attention_bwd
