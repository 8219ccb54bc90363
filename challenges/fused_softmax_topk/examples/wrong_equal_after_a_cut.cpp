// fails: ties_small_integers
// Columns are met in the order of vector lanes, 128 at a time. When the candidates are cut back to
// the best K, every later one must exceed the K-th at once: an equal logit of a lower column that
// the same 128 still hold is lost.
#include "around_naive.h"

static int answer(const Call& call) {
  const int status = call.naive();
  const stk_params& p = *call.p;
  if (status != ASSAY_OK || !call.selects_fp32() || p.K > p.V) return status;
  constexpr std::int64_t kLanes = 16, kGroup = 128;
  const auto K = static_cast<std::ptrdiff_t>(p.K);
  for (std::int64_t r = 0; r < p.rows; ++r) {
    if (call.idx[r * p.K] < 0) continue;  // a row with NaN
    const float* row = call.row(r);
    const auto better = [row](std::int32_t a, std::int32_t b) {
      return row[a] > row[b] || (row[a] == row[b] && a < b);
    };
    std::vector<std::int32_t> kept;
    float bound = 0;
    bool bounded = false;
    for (std::int64_t i = 0; i < (p.V + kGroup - 1) / kGroup * kGroup; ++i) {
      const std::int64_t in = i % kGroup, lane = in / (kGroup / kLanes),
                         j = i - in + in % (kGroup / kLanes) * kLanes + lane;
      if (j >= p.V || (bounded && !(row[j] > bound))) continue;
      kept.push_back(static_cast<std::int32_t>(j));
      if (std::ssize(kept) < 2 * K + kGroup) continue;
      std::nth_element(kept.begin(), kept.begin() + K - 1, kept.end(), better);
      kept.resize(static_cast<std::size_t>(K));
      bound = row[kept.back()];
      bounded = true;
    }
    std::sort(kept.begin(), kept.end(), better);
    std::copy_n(kept.begin(), p.K, call.idx + r * p.K);
  }
  return ASSAY_OK;
}
