// fails: resumed_twice
// Takes all steps at once, whatever `until` says.
#define tt_train_part naive_tt_train_part
#include "naive.cpp"
#undef tt_train_part

extern "C" int tt_train_part(assay_ctx* ctx, const tt_config* c, const uint16_t* docs,
                             int64_t n_docs, const tt_budget* budget, int32_t resume, int64_t until,
                             void* state, void* blob) {
  if (budget != nullptr && until >= 0) until = budget->max_tokens;
  return naive_tt_train_part(ctx, c, docs, n_docs, budget, resume, until, state, blob);
}
