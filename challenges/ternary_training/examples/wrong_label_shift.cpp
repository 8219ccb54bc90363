// fails: label_shift train
// The logits of a position are trained to repeat its token instead of predicting the next.
#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

struct Wrong : Pass {
  using Pass::Pass;
  Index target(const std::uint16_t* tokens, Index t) const override { return tokens[t]; }
};

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || docs == nullptr)
    return naive_tt_train(ctx, c, docs, n_docs, budget, blob);
  return train_with<Trainer<Wrong>>(ctx, *c, docs, n_docs, *budget,
                                    static_cast<std::uint8_t*>(blob));
}
