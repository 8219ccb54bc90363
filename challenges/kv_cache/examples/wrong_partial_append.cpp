// fails: capacity out_of_memory
// The budget, and whether there is memory, turn out entry by entry while rows are stored: what
// comes before the entry that does not fit stays.
#define kvc_append naive_kvc_append
#include "naive.cpp"
#undef kvc_append

extern "C" int kvc_append(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* k, const void* v) {
  int status = check_batch(cache, layer, n, slots, cu);
  for (int32_t b = 0; status == ASSAY_OK && b < n; ++b) {
    const int64_t sums[2] = {0, cu[b + 1] - cu[b]}, at = cu[b] * cache->c.n_kv * cache->element;
    status = naive_kvc_append(cache, layer, 1, slots + b, sums,
                              k == nullptr ? k : static_cast<const char*>(k) + at * cache->c.D,
                              v == nullptr ? v : static_cast<const char*>(v) + at * cache->c.Dv);
  }
  return status;
}
