// fails: ptq
// Trains in fp32 and rounds at the end.
#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

struct Wrong : Trainer<> {
  using Trainer::Trainer;
  void round_weights() override { std::copy_n(latent_.data, at_.size, used_.data); }
};

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || docs == nullptr)
    return naive_tt_train(ctx, c, docs, n_docs, budget, blob);
  return train_with<Wrong>(ctx, *c, docs, n_docs, *budget, static_cast<std::uint8_t*>(blob));
}
