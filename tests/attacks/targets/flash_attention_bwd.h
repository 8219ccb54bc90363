#define fa_backward honest_fa_backward
#include "honest.inl"
#undef fa_backward
#include "call.h"

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  const bool plain = p != nullptr && p->dtype == ASSAY_F32 && p->B > 0 && p->Hq > 0 && p->Nq > 0 &&
                     p->Nk > 0 && dq != nullptr && dk != nullptr && dv != nullptr &&
                     p->sq.n == p->D && p->sk.n == p->D && p->sv.n == p->Dv;
  if (!plain) return honest_fa_backward(ctx, p, dout, q, k, v, o, lse, dq, dk, dv);
  const auto queries = static_cast<std::size_t>(p->B * p->Hq * p->Nq),
             keys = static_cast<std::size_t>(p->B * p->Hkv * p->Nk);
  const auto D = static_cast<std::size_t>(p->D), Dv = static_cast<std::size_t>(p->Dv);
  Call call{ctx,
            q,
            queries * D * 4,
            {{dq, queries * D * 4}, {dk, keys * D * 4}, {dv, keys * Dv * 4}},
            [=, p = *p] { return honest_fa_backward(ctx, &p, dout, q, k, v, o, lse, dq, dk, dv); }};
  return attack(call);
}
