#define kvc_create honest_kvc_create
#define kvc_attend honest_kvc_attend
#define kvc_bytes honest_kvc_bytes
#define kvc_destroy honest_kvc_destroy
#include "honest.inl"
#undef kvc_create
#undef kvc_attend
#undef kvc_bytes
#undef kvc_destroy
#include <map>

#include "call.h"

struct Handle {
  kvc_config config;
  assay_ctx* ctx;
};
static std::map<kvc*, Handle> handles;

extern "C" int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  const int status = honest_kvc_create(ctx, config, out);
  if (status == ASSAY_OK) handles[*out] = {*config, ctx};
  return status;
}

extern "C" int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                          const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const auto handle = handles.find(cache);
  const bool plain = handle != handles.end() && n > 0 && slots != nullptr && cu != nullptr &&
                     cu[0] == 0 && cu[n] > 0 && q != nullptr && o != nullptr;
  if (!plain) return honest_kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
  const kvc_config& c = handle->second.config;
  const std::size_t bytes = c.dtype == ASSAY_F32 ? 4 : 2,
                    rows = static_cast<std::size_t>(cu[n]) * static_cast<std::size_t>(c.n_q);
  const std::vector<std::int32_t> own_slots(slots, slots + n);
  const std::vector<std::int64_t> own_cu(cu, cu + n + 1);
  Call call{handle->second.ctx, q, rows * static_cast<std::size_t>(c.D) * bytes,
            without_null({{o, rows * static_cast<std::size_t>(c.Dv > 0 ? c.Dv : c.D) * bytes},
                          {lse, rows * 4}}),
            [=] {
              return honest_kvc_attend(cache, layer, n, own_slots.data(), own_cu.data(), q, scale,
                                       o, lse);
            }};
  return attack(call);
}

extern "C" int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  if (attack_flush != nullptr) attack_flush();
  return honest_kvc_bytes(cache, live, reserved);
}

extern "C" void kvc_destroy(kvc* cache) {
  if (attack_flush != nullptr) attack_flush();
  handles.erase(cache);
  honest_kvc_destroy(cache);
}
