// fails: long_histories_together
// Parts of histories of more than 1,024 tokens are placed by row and head within their entry: all
// entries of a batch leave theirs in the same place, and each is answered with those of the last.
#include "with_rules.h"

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = naive_kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
  if (status != ASSAY_OK || n == 0) return status;
  const auto is_long = [&](int32_t b) { return kvc_len(cache, layer, slots[b]) > 1024; };
  const std::int64_t row = std::int64_t{cache->c.n_q} * cache->c.Dv * cache->element;
  auto* bytes = static_cast<unsigned char*>(o);
  for (int32_t b = 0; b < n; ++b) {
    for (int32_t later = b + 1; is_long(b) && later < n; ++later) {
      if (!is_long(later)) continue;
      const std::int64_t rows = std::min(cu[b + 1] - cu[b], cu[later + 1] - cu[later]);
      std::copy_n(bytes + cu[later] * row, rows * row, bytes + cu[b] * row);
      if (lse == nullptr) continue;
      std::copy_n(lse + cu[later] * cache->c.n_q, rows * cache->c.n_q, lse + cu[b] * cache->c.n_q);
    }
  }
  return ASSAY_OK;
}
