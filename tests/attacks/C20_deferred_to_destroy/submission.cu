// attack: the attention of the timed phase is launched when the handle is destroyed or asked for its size
// challenge: kv_cache
// cases: prefill_chunk
// expect: WA | PV
// deadline: 400
// fast: none
// kind: order
#define kvc_attend honest_kvc_attend
#define kvc_bytes honest_kvc_bytes
#define kvc_destroy honest_kvc_destroy
#include "honest.inl"
#undef kvc_attend
#undef kvc_bytes
#undef kvc_destroy
#include <functional>
#include <vector>

#include "witness.h"

static std::vector<std::function<int()>> owed;

static void pay() {
  for (const auto& work : owed) work();
  owed.clear();
}

extern "C" int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                          const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  if (n <= 0 || slots == nullptr || cu == nullptr)
    return honest_kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
  const std::vector<std::int32_t> s(slots, slots + n);
  const std::vector<std::int64_t> c(cu, cu + n + 1);
  owed.push_back(
      [=] { return honest_kvc_attend(cache, layer, n, s.data(), c.data(), q, scale, o, lse); });
  witness();
  return ASSAY_OK;
}

extern "C" int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  pay();
  return honest_kvc_bytes(cache, live, reserved);
}

extern "C" void kvc_destroy(kvc* cache) {
  pay();
  honest_kvc_destroy(cache);
}
