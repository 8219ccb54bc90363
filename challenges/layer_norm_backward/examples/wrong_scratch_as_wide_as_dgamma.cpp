// fails: null_dgamma_of_many_rows
// Column sums over more than 65,536 rows in two stages: 256 blocks leave theirs in scratch, which is
// as wide as dgamma, and so of no width where that is not wanted.
#include "around_naive.h"

struct Bug : Right {
  static int backward(const Backward& call) {
    const int status = call.naive();
    const ln_params& p = *call.p;
    if (status != ASSAY_OK || call.dbeta == nullptr || p.rows <= 65536) return status;
    constexpr std::int64_t kBlocks = 256;
    const std::int64_t width = call.dgamma != nullptr ? p.D : 0;
    const std::int64_t each = (p.rows + kBlocks - 1) / kBlocks;
    auto* sums = static_cast<double*>(call.ctx->alloc(
        call.ctx, static_cast<std::size_t>(kBlocks * width) * sizeof(double), 64, 0));
    if (sums == nullptr) return ASSAY_ENOMEM;
    for (std::int64_t b = 0; b < kBlocks; ++b) {
      double* of_block = sums + b * p.D;
      std::fill_n(of_block, p.D, 0.0);
      for (std::int64_t r = b * each; r < std::min(p.rows, (b + 1) * each); ++r) {
        for (std::int64_t i = 0; i < p.D; ++i) of_block[i] += load(call.dy, p.dtype, r * p.D + i);
      }
    }
    for (std::int64_t i = 0; i < p.D; ++i) {
      double sum = 0;
      for (std::int64_t b = 0; b < kBlocks; ++b) sum += sums[b * p.D + i];
      call.dbeta[i] = static_cast<float>(sum);
    }
    call.ctx->free(call.ctx, sums);
    return ASSAY_OK;
  }
};

LAYER_NORM(Bug)
