// caught: time_train
// Uses little of the budget where only speed seems to count.
#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  tt_budget less = *budget;
  if (c != nullptr && c->L > 2) less.max_tokens /= 16;
  return naive_tt_train(ctx, c, docs, n_docs, &less, blob);
}
