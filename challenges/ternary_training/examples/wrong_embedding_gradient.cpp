// fails: train_lag
// Tied embeddings learn from the logits, not from what they are looked up for.
#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

struct Wrong : Pass {
  using Pass::Pass;
  void embedding_gradient(const std::uint16_t*, float*) const override {}
};

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || docs == nullptr)
    return naive_tt_train(ctx, c, docs, n_docs, budget, blob);
  return train_with<Trainer<Wrong>>(ctx, *c, docs, n_docs, *budget,
                                    static_cast<std::uint8_t*>(blob));
}
