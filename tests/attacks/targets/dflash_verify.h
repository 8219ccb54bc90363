#define dv_attention honest_dv_attention
#include "honest.inl"
#undef dv_attention
#include "call.h"

extern "C" int dv_attention(assay_ctx* ctx, const fa_params* p, const std::int64_t* P,
                            const std::int64_t* cu, const std::int32_t* parent, const void* q,
                            const void* const* kc, const void* const* vc, void* o, float* lse) {
  const bool plain = p != nullptr && p->dtype == ASSAY_F32 && p->B > 0 && P != nullptr &&
                     cu != nullptr && cu[0] == 0 && cu[p->B] > 0 && q != nullptr && o != nullptr &&
                     p->Hq > 0;
  if (!plain) return honest_dv_attention(ctx, p, P, cu, parent, q, kc, vc, o, lse);
  const auto rows = static_cast<std::size_t>(cu[p->B]) * static_cast<std::size_t>(p->Hq);
  const std::size_t bytes = rows * static_cast<std::size_t>(p->D) * 4;
  Call call{ctx, q, bytes, without_null({{o, bytes}, {lse, rows * 4}}),
            [=, p = *p] { return honest_dv_attention(ctx, &p, P, cu, parent, q, kc, vc, o, lse); }};
  return attack(call);
}
