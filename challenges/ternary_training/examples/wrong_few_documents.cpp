// fails: val_leak
// Trains on the first documents again and again, and looks good on those.
#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

struct Wrong : Trainer<> {
  using Trainer::Trainer;
  Index next_document(Index n_docs) override { return next_++ % std::min<Index>(n_docs, 8); }
};

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || docs == nullptr)
    return naive_tt_train(ctx, c, docs, n_docs, budget, blob);
  return train_with<Wrong>(ctx, *c, docs, n_docs, *budget, static_cast<std::uint8_t*>(blob));
}
