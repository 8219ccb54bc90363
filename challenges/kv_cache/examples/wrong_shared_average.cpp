// fails: shared_forks shared_nothing_own shared_spike
// The results for the prefix and for the rest are averaged by their numbers of keys, not by the
// sums of their exponentials.
#define kvc_attend_shared naive_kvc_attend_shared
#include "naive.cpp"
#undef kvc_attend_shared

extern "C" int kvc_attend_shared(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                                 const int64_t* cu, int64_t shared, const void* q, float scale,
                                 void* o, float* lse) {
  const int status = naive_kvc_attend_shared(cache, layer, n, slots, cu, shared, q, scale, o, lse);
  if (status != ASSAY_OK || cache->c.dtype != ASSAY_F32) return status;
  const kvc_config& c = cache->c;
  const auto Dv = static_cast<std::size_t>(c.Dv);
  for (int32_t b = 0; b < n; ++b) {
    Layer& history = cache->sequence(slots[b]).layers[static_cast<std::size_t>(layer)];
    std::vector<float> weights(static_cast<std::size_t>(history.length + 1)), first(Dv), rest(Dv);
    for (int64_t i = 0; i < (cu[b + 1] - cu[b]) * c.n_q; ++i) {
      const int64_t at = cu[b] * c.n_q + i;
      const int64_t keys = Rules::position(history.length, cu[b + 1] - cu[b], i / c.n_q) + 1;
      const auto part = [&](std::vector<float>& values, int64_t begin, int64_t end) {
        cache->attend<Rules>(
            history, end, [&](int64_t j) { return j >= begin; }, Rules::key_head(c, i % c.n_q),
            static_cast<const float*>(q) + at * c.D, scale, weights.data(), values.data(), 0,
            nullptr);
      };
      if (keys <= shared) continue;
      part(first, 0, shared);
      part(rest, shared, keys);
      const float share = static_cast<float>(shared) / static_cast<float>(keys);
      for (std::size_t d = 0; d < Dv; ++d) {
        cache->put(o, at * c.Dv + static_cast<int64_t>(d),
                   share * first[d] + (1 - share) * rest[d]);
      }
    }
  }
  return ASSAY_OK;
}
