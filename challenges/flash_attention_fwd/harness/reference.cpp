// fp64 attention, and the plain fp32 (or half-width) implementation that sets the tolerance: two
// passes, sequential sums over keys.
#include <algorithm>
#include <cmath>

#include "assay/parallel.h"
#include "assay/random.h"
#include "assay/size.h"
#include "shared/plain_sum.h"
#include "trusted.h"

namespace assay::flash_attention_fwd {
namespace {

using attention::Head;
using attention::Problem;
using attention::RowsD;
using attention::RowsF;
using attention::Tile;

// Weights as the plain implementation stores them. For e4m3, whose smallest normal number is 2^-6
// and whose largest is 448, e^(s - max) <= 1 is scaled up to 256.
void round_weights(const Problem& problem, RowsF& p) {
  const std::int32_t dtype = problem.p.dtype;
  if (problem.fp8) {
    for (float& x : p.reshaped())
      x = attention::e4m3_to_float(attention::float_to_e4m3(x * 256)) / 256;
    return;
  }
  if (dtype == ASSAY_F32) return;
  for (float& x : p.reshaped()) x = attention::round_like(dtype, x);
}

TileReference multiply(const Head& head, Tile& tile) {
  const fa_params& p = head.problem->p;
  const std::int64_t n = tile.hi - tile.lo;
  TileReference out{head.b, head.h,   tile.first, tile.rows,         {}, {},
                    {},     tile.lse, tile.lse32, tile.conditioning, {}};
  for (const auto& r : tile.range) out.keys.push_back(std::max<std::int64_t>(r.hi - r.lo, 0));
  const auto v = head.v.middleRows(tile.lo, n);
  out.o.noalias() = tile.p * v.cast<double>();
  out.scale.noalias() = tile.p * v.cast<double>().cwiseAbs();
  round_weights(*head.problem, tile.p32);
  RowsF plain = RowsF::Zero(tile.rows, p.Dv);
  add_plain_product(tile.p32, v, plain);
  out.plain_o.resize(tile.rows, p.Dv);
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    const auto sum = static_cast<float>(tile.sum32[to_size(i)]);
    for (std::int64_t d = 0; d < p.Dv; ++d) {
      const float o = sum == 0 ? 0.0f : plain(i, d) / sum;
      out.plain_o(i, d) = static_cast<double>(attention::round_like(p.dtype, o));
    }
  }
  return out;
}

}  // namespace

std::unique_ptr<ForwardReference> make_reference(const CaseSpec& spec, const Problem& problem,
                                                 BufferViews buffers) {
  auto reference = std::make_unique<ForwardReference>();
  const std::int64_t heads = problem.p.B * problem.p.Hq;
  const auto sample = spec.params.value("sample", std::uint64_t{1});
  const std::uint64_t secret = buffers[kSecret].as<std::uint64_t>()[0];
  const attention::Extras extras{buffers[kAlibi].as<float>(), buffers[kSink].as<float>(),
                                 buffers[kBias].as<float>(), buffers[kScales].as<float>()};
  std::vector<std::vector<TileReference>> of_head(to_size(heads));
  parallel_for(heads, 1, [&](std::int64_t begin, std::int64_t end) {
    Tile tile;
    for (std::int64_t at = begin; at < end; ++at) {
      const Head head =
          attention::load_head(problem, at / problem.p.Hq, at % problem.p.Hq, buffers, extras);
      const std::int64_t step = attention::tile_rows(head);
      for (std::int64_t first = 0; first < head.queries; first += step) {
        const auto number = static_cast<std::uint64_t>(at * problem.p.Nq + first);
        if (substream(secret, number) % sample != 0) continue;
        attention::make_tile(head, first, std::min(step, head.queries - first), nullptr, tile);
        of_head[to_size(at)].push_back(multiply(head, tile));
      }
    }
  });
  for (auto& tiles : of_head) std::ranges::move(tiles, std::back_inserter(reference->tiles));
  return reference;
}

}  // namespace assay::flash_attention_fwd
