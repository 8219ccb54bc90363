// Judges rows of o within the rounding that the conditioning of their scores allows, and lse by its
// absolute error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>
#include <vector>

#include "assay/parallel.h"
#include "assay/size.h"
#include "assay/tolerance.h"
#include "shared/log_sum_exp.h"
#include "shared/score_rounding.h"
#include "trusted.h"

namespace assay::flash_attention_fwd {
namespace {

using attention::Problem;

class Checker {
 public:
  Checker(const Problem& problem, BufferViews buffers) : problem_(problem), buffers_(buffers) {}

  void tile(const TileReference& t, RowJudge& o, RowJudge& lse) const {
    for (std::int64_t i = 0; i < t.rows; ++i) {
      o_row(t, i, o);
      if (buffers_[kLse].bytes != 0) lse_row(t, i, lse);
    }
  }

 private:
  std::int64_t row_number(const TileReference& t, std::int64_t i) const {
    return problem_.lse_at(t.b, t.h, t.first + i);
  }

  // C of the row, with what the conditioning of its scores costs.
  double factor(const TileReference& t, std::int64_t i) const {
    return attention_roundings(static_cast<double>(t.keys[to_size(i)]), problem_.p.D,
                               t.conditioning[to_size(i)]);
  }

  // If all weights are equal, the roundings of a plain sum of n terms may all go the same way: at
  // most n / 2 half units. Not granted beyond kMost keys, since it would hide a key that is left
  // out.
  double equal_weights(const TileReference& t, std::int64_t i) const {
    constexpr std::int64_t kMost = 2048;
    return static_cast<double>(std::min(t.keys[to_size(i)], kMost)) / 2;
  }

  // With fp8 inputs, tensor cores keep about 14 bits of a score's sum. Rounding each weight to e4m3
  // moves o by at most 2^-4 of the sum of |terms|, which is its condition scale. This is a strict
  // bound, so passing does not depend on luck.
  double fp8_floor(const TileReference& t, std::int64_t i, double of_weights) const {
    if (!problem_.fp8) return 0;
    const double conditioning = t.conditioning[to_size(i)];
    return of_weights + (std::isfinite(conditioning) ? conditioning : 0) * 0x1p-13;
  }

  // What is expected of a row of o, until the next call. A NaN that a query sees spoils its whole
  // row, so that beside the elements that must be NaN any other may be.
  static std::span<const double> spoiled_like(std::span<const double> got,
                                              std::span<const double> expected) {
    const auto is_nan = [](double x) { return std::isnan(x); };
    if (std::ranges::none_of(expected, is_nan)) return expected;
    thread_local std::vector<double> row;
    row.assign(expected.begin(), expected.end());
    for (std::size_t d = 0; d < row.size(); ++d) {
      if (is_nan(got[d])) row[d] = got[d];
    }
    return row;
  }

  void o_row(const TileReference& t, std::int64_t i, RowJudge& all) const {
    const fa_params& p = problem_.p;
    const auto D = to_size(p.Dv);
    const std::int64_t at = problem_.query_at(p.so, t.b, t.h, t.first + i);
    thread_local std::vector<double> got;
    got.resize(D);
    for (std::size_t d = 0; d < D; ++d) {
      got[d] = attention::widen(p.dtype, buffers_[kO].data, at + static_cast<std::int64_t>(d));
    }
    const double floor = factor(t, i) * kEps32 + 2 * attention::storage_eps(p.dtype) +
                         fp8_floor(t, i, attention::kEpsE4m3);
    RowJudge judge("o", {p.dtype == ASSAY_F32 && !problem_.fp8 ? 4.0 : 2.0, floor});
    const auto part = [&](const attention::RowsD& m) {
      return std::span<const double>(m.data() + i * p.Dv, D);
    };
    judge.row(row_number(t, i), got, spoiled_like(got, part(t.o)), part(t.plain_o), part(t.scale));
    all.merge(judge);
  }

  void lse_row(const TileReference& t, std::int64_t i, RowJudge& all) const {
    const auto at = to_size(i);
    const std::int64_t row = row_number(t, i);
    const double floor = (factor(t, i) + equal_weights(t, i)) * kEps32 + fp8_floor(t, i, 0);
    judge_log_sum_exp("lse", row, static_cast<double>(buffers_[kLse].as<float>()[row]), t.lse[at],
                      t.plain_lse[at], floor, all);
  }

  const Problem& problem_;
  BufferViews buffers_;
};

}  // namespace

CheckResult check_outputs(const Problem& problem, const ForwardReference& reference,
                          BufferViews buffers) {
  const Checker checker(problem, buffers);
  RowJudge o("o", {}), lse("lse", {});
  std::mutex mutex;
  const auto tiles = static_cast<std::int64_t>(reference.tiles.size());
  parallel_for(tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    RowJudge my_o("o", {}), my_lse("lse", {});
    for (std::int64_t t = begin; t < end; ++t) {
      checker.tile(reference.tiles[to_size(t)], my_o, my_lse);
    }
    const std::lock_guard lock(mutex);
    o.merge(my_o);
    lse.merge(my_lse);
  });
  CheckResult result;
  o.add_to(result);
  lse.add_to(result);
  if (result.pass) {
    attention::check_gaps(problem, problem.p.so, problem.p.Hq, problem.flat().p.Nq, problem.p.Dv,
                          buffers[kO], "o", result);
  }
  return result;
}

}  // namespace assay::flash_attention_fwd
