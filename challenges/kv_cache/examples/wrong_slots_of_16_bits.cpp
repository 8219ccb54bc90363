// fails: sequences_beyond_16_bits
// The slots of a batch are packed into 16 bits each before attention: beyond them it looks at
// sequences of the front.
#include "with_rules.h"

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK) return status;
  // One call an entry, for no slot may stand twice in a batch.
  for (int32_t b = 0; b < n; ++b) {
    const int32_t packed = static_cast<uint16_t>(slots[b]);
    const int64_t rows[] = {0, cu[b + 1] - cu[b]}, at = cu[b] * cache->c.n_q;
    const int one =
        attend_batch<Rules>(cache, layer, 1, &packed, rows,
                            static_cast<const char*>(q) + at * cache->c.D * cache->element, scale,
                            static_cast<char*>(o) + at * cache->c.Dv * cache->element,
                            lse == nullptr ? nullptr : lse + at);
    if (one != ASSAY_OK) return one;
  }
  return ASSAY_OK;
}
