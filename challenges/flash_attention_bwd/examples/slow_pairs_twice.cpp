// slow: time_1024
// Right but slow: pair by pair, and every gradient in a pass of its own that computes the weights
// again.
#include "pairs.h"

// Three passes, of which each throws two of the gradients away.
extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  int status = ASSAY_OK;
  const int passes = p != nullptr && p->Nq >= 1024 ? 3 : 1;
  for (int pass = 0; pass < passes && status == ASSAY_OK; ++pass) {
    status = backward<Right>(ctx, p, dout, q, k, v, o, lse, dq, dk, dv);
  }
  return status;
}
