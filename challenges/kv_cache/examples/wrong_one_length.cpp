// fails: layers_skewed layer_of_len
// One length per sequence, that of its first layer.
#define kvc_len naive_kvc_len
#include "naive.cpp"
#undef kvc_len

extern "C" int64_t kvc_len(kvc* cache, int32_t, int32_t slot) {
  return naive_kvc_len(cache, 0, slot);
}
