// fails: more_than_65536_keys
// Positions of keys are 16-bit numbers: keys from 65,536 on do not exist. As
// pytorch/pytorch#162588.
#define fa_forward naive_fa_forward
#include "naive.cpp"
#undef fa_forward

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  fa_params narrow = *p;
  narrow.Nk = std::min<std::int64_t>(p->Nk, 65536);
  return naive_fa_forward(ctx, &narrow, q, k, v, o, lse);
}
