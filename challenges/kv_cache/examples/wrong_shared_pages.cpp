// fails: shared_forks shared_nothing_own shared_refused
// The prefix is read in whole pages and the rest from the end of the prefix on, so what is between
// is lost; and a prefix longer than the entry is cut to it.
#define kvc_attend_shared naive_kvc_attend_shared
#include "naive.cpp"
#undef kvc_attend_shared

static thread_local int64_t shared_tokens;

struct WholePages : Rules {
  static bool visible(const kvc_config& c, int64_t key, int64_t position) {
    const bool lost = key >= shared_tokens / kPage * kPage && key < shared_tokens;
    return !lost && Rules::visible(c, key, position);
  }
};

extern "C" int kvc_attend_shared(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                                 const int64_t* cu, int64_t shared, const void* q, float scale,
                                 void* o, float* lse) {
  if (shared < 0) return ASSAY_EINVAL;
  shared_tokens = shared;
  return attend_batch<WholePages>(cache, layer, n, slots, cu, q, scale, o, lse);
}
