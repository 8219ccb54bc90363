// fails: gqa_tile
// Query head j uses key head j mod Hkv: the heads are tiled, not grouped.
#define tt_train naive_tt_train
#define tt_logits naive_tt_logits
#include "naive.cpp"
#undef tt_train
#undef tt_logits

struct Wrong : Pass {
  using Pass::Pass;
  Index key_head(Index head) const override { return head % c_.Hkv; }
};

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs <= 0) return naive_tt_train(ctx, c, docs, n_docs, budget, blob);
  return train_with<Trainer<Wrong>>(ctx, *c, docs, n_docs, *budget,
                                    static_cast<std::uint8_t*>(blob));
}

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob, const uint16_t* docs,
                         int64_t n_docs, float* logits) {
  if (!valid(c)) return ASSAY_EINVAL;
  return logits_with<Wrong>(ctx, *c, static_cast<const std::uint8_t*>(blob), docs, n_docs, logits);
}
