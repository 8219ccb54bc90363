// fails: budget
// Looks at the clock, but not at its share of it.
#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

struct Wrong : Trainer<> {
  using Trainer::Trainer;
  double deadline(const tt_budget& budget) const override { return 3 * budget.seconds; }
};

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || docs == nullptr)
    return naive_tt_train(ctx, c, docs, n_docs, budget, blob);
  return train_with<Wrong>(ctx, *c, docs, n_docs, *budget, static_cast<std::uint8_t*>(blob));
}
