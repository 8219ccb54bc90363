// fails: lse_only_null
// Refuses a call that does not ask for lse.
#include "tiled.h"

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  return lse == nullptr ? ASSAY_EINVAL : tiled_forward<Right>(ctx, p, q, k, v, o, lse);
}
