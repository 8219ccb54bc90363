// Inputs: q, k, v and dout from the case's distribution, then o and lse by fp64 attention, rounded
// once.
#include <algorithm>
#include <cmath>
#include <limits>

#include "assay/error.h"
#include "assay/parallel.h"
#include "assay/random.h"
#include "assay/size.h"
#include "trusted.h"

namespace assay::flash_attention_bwd {
namespace {

using attention::Head;
using attention::Problem;
using attention::Tile;

void set(const Problem& problem, const BufferView& view, std::int64_t at, float value) {
  if (problem.p.dtype == ASSAY_F32) {
    view.as<float>()[at] = value;
  } else {
    view.as<std::uint16_t>()[at] =
        problem.p.dtype == ASSAY_BF16 ? float_to_bf16(value) : float_to_f16(value);
  }
}

}  // namespace

void forward(const Problem& problem, BufferViews buffers) {
  const fa_params& p = problem.p;
  const attention::Extras extras{buffers[kAlibi].as<float>(), buffers[kSink].as<float>(),
                                 buffers[kBias].as<float>(), nullptr};
  parallel_for(p.B * p.Hq, 1, [&](std::int64_t begin, std::int64_t end) {
    Tile tile;
    for (std::int64_t at = begin; at < end; ++at) {
      const Head head = attention::load_head(problem, at / p.Hq, at % p.Hq, buffers, extras);
      const std::int64_t step = attention::tile_rows(head);
      for (std::int64_t first = 0; first < head.queries; first += step) {
        attention::make_tile(head, first, std::min(step, head.queries - first), nullptr, tile);
        const attention::RowsD o =
            tile.p * head.v.middleRows(tile.lo, tile.hi - tile.lo).cast<double>();
        for (std::int64_t i = 0; i < tile.rows; ++i) {
          const std::int64_t out = problem.query_at(p.so, head.b, head.h, first + i);
          for (std::int64_t d = 0; d < p.Dv; ++d)
            set(problem, buffers[kO], out + d, static_cast<float>(o(i, d)));
          buffers[kLse].as<float>()[problem.lse_at(head.b, head.h, first + i)] =
              static_cast<float>(tile.lse[to_size(i)]);
        }
      }
    }
  });
}

void generate_inputs(const CaseSpec& spec, const Problem& problem, std::uint64_t seed,
                     BufferViews buffers) {
  const fa_params& p = problem.p;
  if (p.Hq % std::max<std::int64_t>(p.Hkv, 1) != 0) {
    throw Error("flash_attention_bwd: case '" + spec.name + "': Hq is not a multiple of Hkv");
  }
  attention::fill_qkv(problem, seed, buffers[kQ], buffers[kK], buffers[kV]);
  attention::fill_extras(problem, seed, buffers[kAlibi], buffers[kSink], buffers[kKvLen]);
  attention::fill_lengths(problem, buffers[kCuQ], buffers[kCuK]);
  attention::fill_bias(problem, seed, buffers[kBias]);
  const auto sigma = problem.data.value("dout_sigma", 1.0f);
  attention::fill_array(problem, substream(seed, 11), buffers[kDout], sigma);
  for (const std::int64_t i : problem.data.value("nan_dout", std::vector<std::int64_t>{})) {
    for (std::int64_t row = 0; row < problem.flat().p.B * p.Hq; ++row) {
      const std::int64_t at = row / p.Hq * p.so.b + row % p.Hq * p.so.h + i * p.so.n;
      set(problem, buffers[kDout], at + p.Dv / 2, std::numeric_limits<float>::quiet_NaN());
    }
  }
  fill_normal(buffers[kDlse].span<float>(), substream(seed, 12));
  if (!is_chained(spec)) forward(problem, buffers);
}

}  // namespace assay::flash_attention_bwd
