// For examples whose kvc_attend is the right one but for its rules.
#pragma once

#define kvc_attend naive_kvc_attend
#include "naive.cpp"
#undef kvc_attend

// At the end of the file.
#define ATTEND_WITH(Rules)                                                                        \
  extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,           \
                            const int64_t* cu, const void* q, float scale, void* o, float* lse) { \
    return attend_batch<Rules>(cache, layer, n, slots, cu, q, scale, o, lse);                     \
  }
