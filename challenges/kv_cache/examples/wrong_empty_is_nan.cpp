// fails: ragged_lengths nothing_cached
// A sequence without tokens divides a sum of no values by a sum of no weights.
#define kvc_attend naive_kvc_attend
#include "naive.cpp"
#undef kvc_attend

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = naive_kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
  for (int32_t b = 0; status == ASSAY_OK && b < n; ++b) {
    const kvc_config& c = cache->c;
    const int64_t seen = kvc_len(cache, layer, slots[b]);
    for (int64_t i = cu[b] * c.n_q * c.Dv; seen == 0 && i < cu[b + 1] * c.n_q * c.Dv; ++i)
      cache->put(o, i, NAN);
  }
  return status;
}
