// fails: more_than_65536_keys
// Positions of keys are 16-bit numbers: keys from 65,536 on do not exist, and their gradients are
// not written. As pytorch/pytorch#162588.
#define fa_backward naive_fa_backward
#include "naive.cpp"
#undef fa_backward

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  if (!valid(p, Arrays{dout, q, k, v, o, lse, nullptr, dq, dk, dv})) return ASSAY_EINVAL;
  fa_params narrow = *p;
  narrow.Nk = std::min<std::int64_t>(p->Nk, 65536);
  return naive_fa_backward(ctx, &narrow, dout, q, k, v, o, lse, dq, dk, dv);
}
