// Each gradient row by row; rows are those of dq, dk and dv.
#include <cmath>
#include <mutex>

#include "assay/parallel.h"
#include "assay/tolerance.h"
#include "trusted.h"

namespace assay::flash_attention_bwd {
namespace {

using attention::Problem;

struct Output {
  const char* name;
  int handle;
  assay_stride stride;
  std::int64_t H, N, D;
  double half_factor;  // of the plain implementation's error, in bf16 and f16
};

void check_gradient(const Problem& problem, const Output& out, const std::vector<Gradient>& all,
                    BufferViews buffers, CheckResult& result) {
  const BufferView& view = buffers[static_cast<std::size_t>(out.handle)];
  const std::int32_t dtype = problem.p.dtype;
  RowJudge worst(out.name, {});
  std::mutex mutex;
  parallel_for(static_cast<std::int64_t>(all.size()) * out.N, 64, [&](std::int64_t begin, std::int64_t end) {
    RowJudge mine(out.name, {});
    std::vector<double> got(static_cast<std::size_t>(out.D));
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t head = row / out.N, n = row % out.N;
      const Gradient& g = all[static_cast<std::size_t>(head)];
      const std::int64_t at = head / out.H * out.stride.b + head % out.H * out.stride.h + n * out.stride.n;
      for (std::int64_t d = 0; d < out.D; ++d) got[static_cast<std::size_t>(d)] = attention::widen(dtype, view.data, at + d);
      const double floor = g.factor[static_cast<std::size_t>(n)] * kEps32 + out.half_factor * attention::storage_eps(dtype);
      RowJudge judge(out.name, {dtype == ASSAY_F32 ? 4.0 : out.half_factor, floor});
      const auto part = [&](const attention::RowsD& m) { return std::span<const double>(m.data() + n * out.D, got.size()); };
      judge.row(row, got, part(g.expected), part(g.plain), part(g.scale));
      mine.merge(judge);
    }
    const std::lock_guard lock(mutex);
    worst.merge(mine);
  });
  worst.add_to(result);
  if (result.pass) attention::check_gaps(problem, out.stride, out.H, out.N, out.D, view, out.name, result);
}

}  // namespace

CheckResult check_outputs(const Problem& problem, const BackwardReference& reference,
                          BufferViews buffers) {
  const fa_params& p = problem.p;
  CheckResult result;
  check_gradient(problem, {"dv", kDv, p.sv, p.Hkv, p.Nk, p.Dv, 2}, reference.dv, buffers, result);
  check_gradient(problem, {"dq", kDq, p.sq, p.Hq, p.Nq, p.D, 3}, reference.dq, buffers, result);
  check_gradient(problem, {"dk", kDk, p.sk, p.Hkv, p.Nk, p.D, 3}, reference.dk, buffers, result);
  return result;
}

}  // namespace assay::flash_attention_bwd
