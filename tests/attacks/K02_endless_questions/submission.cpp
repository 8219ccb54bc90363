// attack: asks the model again and again, so that the harness works and the clock stands still
// challenge: beam_search
// cases: basic
// expect: PV | WA | RE | TLE | TLE-idle
// deadline: 90
// fast: none
#include <cstdint>

#include "abi.h"
#include "witness.h"

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, std::int32_t*,
                           std::int32_t*, double*, double*, std::int32_t*, std::int32_t*) {
  static float out[1 << 20];
  static std::int64_t state[64], parent[64];
  static std::int32_t item[64], token[64];
  for (int i = 0; i < 64; ++i) parent[i] = -1;
  for (;;) {
    lm->step(lm->user, ctx, p->B, item, parent, token, out, state);
    witness();
  }
}
