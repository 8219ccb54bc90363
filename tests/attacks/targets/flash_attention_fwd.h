#define fa_forward honest_fa_forward
#include "honest.inl"
#undef fa_forward
#include "call.h"

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  const bool plain = p != nullptr && p->dtype == ASSAY_F32 && p->B > 0 && p->Hq > 0 && p->Nq > 0 &&
                     p->Nk > 0 && o != nullptr && p->so.n == p->Dv && p->so.h == p->Nq * p->Dv;
  if (!plain) return honest_fa_forward(ctx, p, q, k, v, o, lse);
  const auto rows = static_cast<std::size_t>(p->B * p->Hq * p->Nq);
  Call call{ctx, q, rows * static_cast<std::size_t>(p->D) * 4,
            without_null({{o, rows * static_cast<std::size_t>(p->Dv) * 4}, {lse, rows * 4}}),
            [=, p = *p] { return honest_fa_forward(ctx, &p, q, k, v, o, lse); }};
  return attack(call);
}
