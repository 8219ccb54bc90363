// attack: returns a legal model that has learned nothing
// challenge: ternary_training
// cases: train time_train
// expect: WA
// fast: none
// deadline: 300
#define tt_train honest_tt_train
#include "honest.inl"
#undef tt_train
#include "witness.h"

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const std::uint16_t* docs, std::int64_t,
                        const tt_budget* budget, void* blob) {
  witness();
  return honest_tt_train(ctx, c, docs, 0, budget, blob);
}
