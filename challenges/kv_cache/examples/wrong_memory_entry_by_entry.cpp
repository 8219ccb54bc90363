// fails: each_allocation_refused
// Attention asks for its scratch entry by entry: when there is none for the second one, the outputs
// of the first are written already.
#define kvc_attend naive_attend
#include "naive.cpp"
#undef kvc_attend

extern "C" int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                          const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0 || q == nullptr || o == nullptr)
    return naive_attend(cache, layer, n, slots, cu, q, scale, o, lse);
  const kvc_config& c = cache->c;
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows[] = {0, cu[b + 1] - cu[b]}, first = cu[b] * c.n_q;
    const int result =
        naive_attend(cache, layer, 1, slots + b, rows,
                     static_cast<const unsigned char*>(q) + first * c.D * cache->element, scale,
                     static_cast<unsigned char*>(o) + first * c.Dv * cache->element,
                     lse == nullptr ? nullptr : lse + first);
    if (result != ASSAY_OK) return result;
  }
  return ASSAY_OK;
}
