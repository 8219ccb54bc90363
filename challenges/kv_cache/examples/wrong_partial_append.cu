// fails: capacity
// The limits are looked at entry by entry, while rows are stored: what comes before the entry that
// does not fit stays.
#define kvc_append naive_kvc_append
#include "naive.cu"
#undef kvc_append

extern "C" int kvc_append(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                          const std::int64_t* cu, const void* k, const void* v) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0 || k == nullptr || v == nullptr)
    return naive_kvc_append(cache, layer, n, slots, cu, k, v);
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows[] = {0, cu[b + 1] - cu[b]}, first = cu[b] * cache->row();
    const int of_entry =
        naive_kvc_append(cache, layer, 1, slots + b, rows, static_cast<const float*>(k) + first,
                         static_cast<const float*>(v) + first);
    if (of_entry != ASSAY_OK) return of_entry;
  }
  return ASSAY_OK;
}
