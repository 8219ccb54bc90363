// fails: quant_outlier
// A key is stored with one scale for all its channels: a few large channels leave the others next
// to no bits. Here keys are rounded to such a grid before they are stored.
#define kvc_append naive_kvc_append
#include "naive.cpp"
#undef kvc_append

extern "C" int kvc_append(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* k, const void* v) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || k == nullptr || cache->c.quant == 0 ||
      cache->c.dtype != ASSAY_F32) {
    return naive_kvc_append(cache, layer, n, slots, cu, k, v);
  }
  const int64_t D = cache->c.D, elements = cu[n] * cache->c.n_kv * D;
  std::vector<float> rounded(static_cast<const float*>(k), static_cast<const float*>(k) + elements);
  for (auto row = rounded.begin(); row != rounded.end(); row += D) {
    float largest = 0;
    for (int64_t d = 0; d < D; ++d) largest = std::max(largest, std::abs(row[d]));
    const float step = largest / static_cast<float>((1 << (cache->c.quant - 1)) - 1);
    for (int64_t d = 0; d < D && step > 0; ++d) row[d] = std::round(row[d] / step) * step;
  }
  return naive_kvc_append(cache, layer, n, slots, cu, rounded.data(), v);
}
