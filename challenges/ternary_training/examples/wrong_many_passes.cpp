// fails: overfit
// Goes over the documents for as long as the budget lasts, however few they are.
#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

struct Wrong : Trainer<> {
  using Trainer::Trainer;
  double most_tokens(Index, const tt_budget& budget) const override {
    return static_cast<double>(budget.max_tokens);
  }
};

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || docs == nullptr)
    return naive_tt_train(ctx, c, docs, n_docs, budget, blob);
  return train_with<Wrong>(ctx, *c, docs, n_docs, *budget, static_cast<std::uint8_t*>(blob));
}
