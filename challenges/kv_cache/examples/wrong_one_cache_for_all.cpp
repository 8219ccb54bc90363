// fails: shared_batch_cache page_edges
// One store for the whole batch: every sequence's rows go to the sequence that was opened first,
// and are read from there.
#define kvc_attend naive_kvc_attend
#define kvc_append naive_kvc_append
#include "naive.cpp"
#undef kvc_append
#undef kvc_attend

namespace {

int32_t first_slot(const kvc* cache) {
  int32_t s = 0;
  while (!cache->known(s)) ++s;
  return s;
}

// Calls f(slot, sums, first row) for each entry.
template <class F>
int one_by_one(kvc* cache, int32_t layer, int32_t n, const int32_t* slots, const int64_t* cu,
               const F& f) {
  int status = check_batch(cache, layer, n, slots, cu);
  for (int32_t b = 0; status == ASSAY_OK && b < n; ++b) {
    const int32_t slot = first_slot(cache);
    const int64_t sums[2] = {0, cu[b + 1] - cu[b]};
    status = f(&slot, sums, cu[b]);
  }
  return status;
}

}  // namespace

extern "C" int kvc_append(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* k, const void* v) {
  return one_by_one(
      cache, layer, n, slots, cu, [&](const int32_t* slot, const int64_t* sums, int64_t row) {
        const kvc_config& c = cache->c;
        const int64_t at = row * c.n_kv * cache->element;
        return naive_kvc_append(cache, layer, 1, slot, sums,
                                k == nullptr ? k : static_cast<const char*>(k) + at * c.D,
                                v == nullptr ? v : static_cast<const char*>(v) + at * c.Dv);
      });
}

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  return one_by_one(
      cache, layer, n, slots, cu, [&](const int32_t* slot, const int64_t* sums, int64_t row) {
        const kvc_config& c = cache->c;
        const int64_t at = row * c.n_q * cache->element;
        return naive_kvc_attend(cache, layer, 1, slot, sums,
                                q == nullptr ? q : static_cast<const char*>(q) + at * c.D, scale,
                                o == nullptr ? o : static_cast<char*>(o) + at * c.Dv,
                                lse == nullptr ? lse : lse + row * c.n_q);
      });
}
