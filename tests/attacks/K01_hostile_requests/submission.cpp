// attack: asks the model with sizes and states that no search has
// challenge: beam_search
// cases: basic
// expect: PV | RE | WA | SV | TLE | MLE
// variants: many negative states rows
// deadline: 60
#include <climits>
#include <cstdint>

#include "abi.h"
#include "witness.h"

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, std::int32_t*,
                           std::int32_t*, double*, double*, std::int32_t*, std::int32_t*) {
  (void)p;
  static float out[4096];
  static std::int64_t state[64], parent[64];
  static std::int32_t item[64], token[64];
#if ATTACK_VARIANT == 0
  const std::int32_t n = INT_MAX;
#elif ATTACK_VARIANT == 1
  const std::int32_t n = -1;
#elif ATTACK_VARIANT == 2
  const std::int32_t n = 4;
  for (int i = 0; i < 4; ++i) item[i] = INT_MIN, parent[i] = LLONG_MAX, token[i] = INT_MAX;
#else
  const std::int32_t n = 64;
  for (int i = 0; i < 64; ++i) parent[i] = -1, token[i] = i;
#endif
  witness();
  return lm->step(lm->user, ctx, n, item, parent, token, out, state);
}
