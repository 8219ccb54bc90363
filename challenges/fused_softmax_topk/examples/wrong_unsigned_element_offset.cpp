// fails: rows_2_to_31_apart
// Row times stride is an unsigned of 32 bits, in elements: it goes as far as the second row.
#include "around_naive.h"

static int answer(const Call& call) {
  if (!call.selects_fp32()) return call.naive();
  for (std::int64_t r = 0; r < call.p->rows; ++r) {
    const std::uint32_t offset =
        static_cast<std::uint32_t>(r) * static_cast<std::uint32_t>(call.p->ld);
    const int status = call.naive_row_at(*call.p, r, std::int64_t{offset} * 4);
    if (status != ASSAY_OK) return status;
  }
  return ASSAY_OK;
}
