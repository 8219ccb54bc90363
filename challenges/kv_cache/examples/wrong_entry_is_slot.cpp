// fails: subset_batch shuffled_every_step
// Entry b of the batch reads slot b: right as long as all slots are attended to in their order.
#define kvc_attend naive_kvc_attend
#include "naive.cpp"
#undef kvc_attend

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK) return status;
  std::vector<int32_t> identity;
  for (int32_t b = 0; b < n; ++b) identity.push_back(cache->known(b) ? b : slots[b]);
  return naive_kvc_attend(cache, layer, n, identity.data(), cu, q, scale, o, lse);
}
