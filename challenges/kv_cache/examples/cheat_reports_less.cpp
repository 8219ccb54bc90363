// caught: decode growth
// Says that half of the memory it holds is all it holds.
#define kvc_bytes naive_kvc_bytes
#include "naive.cpp"
#undef kvc_bytes

extern "C" int kvc_bytes(kvc* cache, int64_t* live, int64_t* reserved) {
  const int status = naive_kvc_bytes(cache, live, reserved);
  if (status != ASSAY_OK) return status;
  *reserved /= 2;
  *live /= 2;
  return ASSAY_OK;
}
