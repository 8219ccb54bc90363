// attack: is slow on purpose where the clock does not count, in the shorter of two shapes, so that
// the longer one looks good beside it
// challenge: flash_attention_fwd
// cases: resource
// expect: honest
// dimension: resources
// fast: none
// deadline: 600
#define fa_forward honest_fa_forward
#include "honest.inl"
#undef fa_forward
#include <ctime>

#include "witness.h"

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  const int status = honest_fa_forward(ctx, p, q, k, v, o, lse);
  if (p != nullptr && p->Hq == 1 && p->Nq == 1024) {
    const timespec long_time{0, 800'000'000};
    nanosleep(&long_time, nullptr);
    witness();
  }
  return status;
}
