// fails: d1 d2 d7 d1025
// Groups of eight elements, and no loop for the rest of the row: dx is not written there.
#include "around_naive.h"

struct Bug : Right {
  static int backward(const Backward& call) {
    if (call.dx == nullptr || !valid(call.p) || call.p->dtype != ASSAY_F32) return call.naive();
    const ln_params& p = *call.p;
    const std::int64_t n = p.rows * p.D;
    if (n == 0) return call.naive();
    auto* whole = static_cast<float*>(
        call.ctx->alloc(call.ctx, static_cast<std::size_t>(n) * sizeof(float), 64, 0));
    if (whole == nullptr) return ASSAY_ENOMEM;
    Backward to_whole = call;
    to_whole.dx = whole;
    const int status = to_whole.naive();
    for (std::int64_t i = 0; status == ASSAY_OK && i < n; ++i) {
      if (i % p.D < p.D / 8 * 8) static_cast<float*>(call.dx)[i] = whole[i];
    }
    call.ctx->free(call.ctx, whole);
    return status;
  }
};

LAYER_NORM(Bug)
