// fails: prefill_stored incremental_equals_full
// The room for a prompt is taken and its length counted, but only single tokens are ever copied in.
#define kvc_append naive_kvc_append
#include "naive.cpp"
#undef kvc_append

extern "C" int kvc_append(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* k, const void* v) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || k == nullptr || v == nullptr || cu[n] == n) {
    return naive_kvc_append(cache, layer, n, slots, cu, k, v);
  }
  const kvc_config& c = cache->c;
  const std::vector<char> nothing(
      static_cast<std::size_t>(cu[n] * c.n_kv * std::max(c.D, c.Dv) * cache->element));
  return naive_kvc_append(cache, layer, n, slots, cu, nothing.data(), nothing.data());
}
