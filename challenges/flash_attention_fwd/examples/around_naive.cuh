// naive.cu with room for a mistake around fa_forward, for the examples in CUDA: each defines
// answer().
#pragma once

#define fa_forward naive_fa_forward
#include "naive.cu"
#undef fa_forward

// The arguments of fa_forward.
struct Call {
  assay_ctx* ctx;
  const fa_params* p;
  const void *q, *k, *v;
  void* o;
  float* lse;

  bool valid() const { return ::valid(p, q, k, v, o); }
  int naive() const { return naive_fa_forward(ctx, p, q, k, v, o, lse); }
};

// What fa_forward does.
static int answer(const Call&);

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  return answer({ctx, p, q, k, v, o, lse});
}

// naive() for changed params.
template <class Change>
int with_params(Call call, Change change) {
  if (!call.valid()) return ASSAY_EINVAL;
  fa_params changed = *call.p;
  change(changed);
  call.p = &changed;
  return call.naive();
}
