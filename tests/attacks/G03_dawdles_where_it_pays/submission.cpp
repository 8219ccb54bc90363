// attack: is slow on purpose where the clock does not count, in the shorter of two shapes, so that
// the longer one looks good beside it
// challenge: flash_attention_bwd
// cases: resource
// expect: honest
// dimension: resources
// fast: none
// deadline: 600
#define fa_backward honest_fa_backward
#include "honest.inl"
#undef fa_backward
#include <ctime>

#include "witness.h"

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  const int status = honest_fa_backward(ctx, p, dout, q, k, v, o, lse, dq, dk, dv);
  if (p != nullptr && p->Hq == 1 && p->Nq == 1024) {
    const timespec long_time{0, 800'000'000};
    nanosleep(&long_time, nullptr);
    witness();
  }
  return status;
}
