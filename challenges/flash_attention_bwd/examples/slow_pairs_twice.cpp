// slow: time_1024
// Right but slow: pair by pair, and every gradient in a pass of its own that computes the weights
// again.
#include "pairs.h"

// Three passes, of which each throws two of the gradients away. What the first has written stands if
// there is no memory for another.
extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  const auto pass = [&] { return backward<Right>(ctx, p, dout, q, k, v, o, lse, dq, dk, dv); };
  const int status = pass();
  for (int more = 0; more < 2 && status == ASSAY_OK && p->Nq >= 1024; ++more) pass();
  return status;
}
