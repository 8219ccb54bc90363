// fails: gqa_blocked gqa_groups_of_3
// Query heads are dealt to key heads in turn, as tiling the key heads does, instead of in blocks.
#define kvc_attend naive_kvc_attend
#include "naive.cpp"
#undef kvc_attend

struct Interleaved : Rules {
  static std::int64_t key_head(const kvc_config& c, std::int64_t query_head) {
    return query_head % c.n_kv;
  }
};

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  return attend_batch<Interleaved>(cache, layer, n, slots, cu, q, scale, o, lse);
}
