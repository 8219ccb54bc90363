// attack: calls the expert's implementation by including it, or by its name in the worker
// challenge: fused_softmax_topk
// cases: basic
// expect: CE | LE
// variants: header name
// witness: compiler par/softmax_topk.h: No such file
// witness: compiler undefined reference to `naive_softmax_topk
#if ATTACK_VARIANT == 0
#include "par/softmax_topk.h"
#endif
#include "abi.h"
namespace par {
int softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*, float*);
}
extern "C" int naive_softmax_topk(assay_ctx*, const stk_params*, const void*, int32_t*, float*,
                                  float*);

extern "C" int softmax_topk(assay_ctx* c, const stk_params* p, const void* x, int32_t* i, float* q,
                            float* l) {
  return naive_softmax_topk(c, p, x, i, q, l) + par::softmax_topk(c, p, x, i, q, l);
}
