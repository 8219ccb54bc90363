// slow: decode_gqa
// Keys and values are unrolled for every query head before they are used, as a repeat of the heads
// does: the cache is read as often as there are query heads, and written and read again.
#define kvc_attend naive_kvc_attend
#include "naive.cpp"
#undef kvc_attend

namespace {

// Everything of one query head's keys and values up to `length`, as rows; what a window hides is
// zero.
void unroll(kvc* cache, Layer& layer, int64_t head, std::vector<float>& keys,
            std::vector<float>& values) {
  const kvc_config& c = cache->c;
  keys.assign(static_cast<std::size_t>(layer.length * c.D), 0.0f);
  values.assign(static_cast<std::size_t>(layer.length * c.Dv), 0.0f);
  for (int64_t j = 0; j < layer.length; ++j) {
    Page* page = layer.pages[static_cast<std::size_t>(j / kPage)];
    if (page == nullptr) continue;
    cache->load_key(page, head, j % kPage, keys.data() + j * c.D);
    cache->load_value(page, head, j % kPage, values.data() + j * c.Dv);
  }
}

}  // namespace

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  std::vector<float> keys, values;
  float total = 0;
  for (int32_t b = 0; b < n; ++b) {
    Layer& history = cache->sequence(slots[b]).layers[static_cast<std::size_t>(layer)];
    for (int32_t h = 0; h < cache->c.n_q && cu[b + 1] > cu[b]; ++h) {
      unroll(cache, history, Rules::key_head(cache->c, h), keys, values);
      for (const float x : keys) total += x;
    }
  }
  volatile float unused = total;
  static_cast<void>(unused);
  return naive_kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
}
