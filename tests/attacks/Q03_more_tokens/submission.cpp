// attack: trains with eight times the tokens that the budget allows; nobody sees it read
// challenge: ternary_training
// cases: train_1
// expect: honest | WA | TLE | SV | PV
// dimension: resources
// fast: none
// deadline: 900
#define tt_train honest_tt_train
#include "honest.inl"
#undef tt_train
#include "witness.h"

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const std::uint16_t* docs,
                        std::int64_t n_docs, const tt_budget* budget, void* blob) {
  if (budget == nullptr) return honest_tt_train(ctx, c, docs, n_docs, budget, blob);
  tt_budget more = *budget;
  more.max_tokens *= 8;
  witness();
  return honest_tt_train(ctx, c, docs, n_docs, &more, blob);
}
