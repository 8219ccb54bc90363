// fails: rows_2_to_31_apart rows_2_gib_apart
// The offset of a row is an int, of bytes: two gigabytes on it is negative.
#include "around_naive.h"

static int answer(const Call& call) {
  if (!call.selects_fp32()) return call.naive();
  for (std::int64_t r = 0; r < call.p->rows; ++r) {
    const auto offset = static_cast<int>(static_cast<unsigned>(r * call.p->ld * 4));
    const int status = call.naive_row_at(*call.p, r, offset);
    if (status != ASSAY_OK) return status;
  }
  return ASSAY_OK;
}
