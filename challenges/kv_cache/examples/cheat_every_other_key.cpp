// caught: long_split
// Long histories are attended to at every other key: half the time where it is measured.
#define kvc_attend naive_kvc_attend
#include "naive.cpp"
#undef kvc_attend

struct Sampled : Rules {
  static bool visible(const kvc_config& c, std::int64_t key, std::int64_t position) {
    return Rules::visible(c, key, position) && (position < 2000 || key % 2 == 0);
  }
};

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  return attend_batch<Sampled>(cache, layer, n, slots, cu, q, scale, o, lse);
}
