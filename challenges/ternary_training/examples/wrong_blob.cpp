// fails: blob_norms
// A blob that is not a legal model: norms that were never written, scales negative.
#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

struct Wrong : Trainer<> {
  using Trainer::Trainer;
  void write(std::uint8_t* blob) const override {
    Trainer::write(blob);
    for (Index i = 0; i < at_.matrices / kBlock; ++i) blob[i * kBytes + 1] |= 0x80;
  }
};

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || docs == nullptr)
    return naive_tt_train(ctx, c, docs, n_docs, budget, blob);
  return train_with<Wrong>(ctx, *c, docs, n_docs, *budget, static_cast<std::uint8_t*>(blob));
}
