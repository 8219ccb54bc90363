// fails: ascending
// Insertion into the sorted list moves at most 32 entries, so a list that must shift as a whole is
// corrupted. Random rows rarely insert that far up; ascending ones always do.
#include "around_naive.h"

static int answer(const Call& call) {
  const int status = call.naive();
  const stk_params& p = *call.p;
  if (status != ASSAY_OK || !call.selects_fp32() || p.K > p.V) return status;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const float* row = call.row(r);
    std::int32_t* list = call.idx + r * p.K;
    std::iota(list, list + p.K, 0);
    std::stable_sort(list, list + p.K,
                     [row](std::int32_t a, std::int32_t b) { return row[a] > row[b]; });
    for (std::int32_t j = p.K; j < p.V; ++j) {
      if (!(row[j] > row[list[p.K - 1]])) continue;
      std::int32_t k = p.K - 1;
      for (int moved = 0; k > 0 && row[j] > row[list[k - 1]] && moved < 32; ++moved, --k)
        list[k] = list[k - 1];
      list[k] = j;
    }
  }
  return ASSAY_OK;
}
