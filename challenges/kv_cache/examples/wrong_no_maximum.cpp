// fails: score_spike
// Exponentials of the scores as they are: fine until one of them passes 88.
#define kvc_attend naive_kvc_attend
#include "naive.cpp"
#undef kvc_attend

struct Plain : Rules {
  static float subtracted(float) { return 0; }
};

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  return attend_batch<Plain>(cache, layer, n, slots, cu, q, scale, o, lse);
}
