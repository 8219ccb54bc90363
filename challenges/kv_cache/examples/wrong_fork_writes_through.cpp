// fails: fork_diverge fork_of_a_fork forks_decode_together
// A fork shares pages, but nothing is copied before writing: the two sides overwrite each other's
// tail.
#define kvc_append naive_kvc_append
#include "naive.cpp"
#undef kvc_append

extern "C" int kvc_append(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* k, const void* v) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0) return status;
  std::vector<std::pair<Page*, int>> shared;
  for (int32_t b = 0; b < n; ++b) {
    const Layer& history = cache->sequence(slots[b]).layers[static_cast<std::size_t>(layer)];
    if (history.length % kPage == 0 || history.pages.back()->packed) continue;
    shared.emplace_back(history.pages.back(), history.pages.back()->holders);
    history.pages.back()->holders = 1;
  }
  const int appended = naive_kvc_append(cache, layer, n, slots, cu, k, v);
  for (auto i = shared.rbegin(); i != shared.rend(); ++i) i->first->holders = i->second;
  return appended;
}
