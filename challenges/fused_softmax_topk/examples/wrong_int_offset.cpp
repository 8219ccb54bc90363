// fails: rows_2_to_31_apart rows_2_gib_apart
// The offset of a row is an int, of bytes: two gigabytes on it is negative.
#include "around_naive.h"

static int answer(const Call& call) {
  if (!call.selects_fp32()) return call.naive();
  const auto* bytes = static_cast<const char*>(call.logits);
  for (std::int64_t r = 0; r < call.p->rows; ++r) {
    const auto offset = static_cast<int>(static_cast<unsigned>(r * call.p->ld * 4));
    stk_params one = *call.p;
    one.rows = 1;
    const int status =
        naive_softmax_topk(call.ctx, &one, bytes + offset, call.idx + r * one.K,
                           call.prob + r * one.K, call.lse != nullptr ? call.lse + r : nullptr);
    if (status != ASSAY_OK) return status;
  }
  return ASSAY_OK;
}
