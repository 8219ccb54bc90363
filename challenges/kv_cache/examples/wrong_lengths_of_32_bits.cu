// fails: lengths_above_32_bits
// A truncation takes its new length as an int.
#define kvc_truncate naive_kvc_truncate
#include "naive.cu"
#undef kvc_truncate

extern "C" int kvc_truncate(kvc* cache, std::int32_t slot, std::int64_t new_len) {
  return naive_kvc_truncate(cache, slot, static_cast<std::int32_t>(new_len));
}
