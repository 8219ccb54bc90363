// fails: page_edges truncate_then_append
// The number of pages to visit is (length + 30) / 32: a page that holds one token is never read.
#define kvc_attend naive_kvc_attend
#include "naive.cpp"
#undef kvc_attend

struct RoundedDown : Rules {
  static bool visible(const kvc_config& c, std::int64_t key, std::int64_t position) {
    return Rules::visible(c, key, position) &&
           key / kPage < std::max<std::int64_t>(1, (position + 31) / kPage);
  }
};

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  return attend_batch<RoundedDown>(cache, layer, n, slots, cu, q, scale, o, lse);
}
