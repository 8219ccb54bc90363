// fails: rope_interleaved train_lag logits
// Turns neighbours (2i, 2i + 1), where the format pairs i with i + hd/2.
#define tt_train naive_tt_train
#define tt_logits naive_tt_logits
#include "naive.cpp"
#undef tt_train
#undef tt_logits

struct Wrong : Pass {
  using Pass::Pass;
  void rope(Index heads, float* x, float direction) const override {
    const Index half = c_.hd / 2;
    for (Index t = 0; t < T_ * heads; ++t) {
      float *v = x + t * c_.hd, sorted[1024];
      for (Index i = 0; i < half; ++i) sorted[i] = v[2 * i], sorted[half + i] = v[2 * i + 1];
      std::copy_n(sorted, c_.hd, v);
    }
    Pass::rope(heads, x, direction);
    for (Index t = 0; t < T_ * heads; ++t) {
      float *v = x + t * c_.hd, sorted[1024];
      std::copy_n(v, c_.hd, sorted);
      for (Index i = 0; i < half; ++i) v[2 * i] = sorted[i], v[2 * i + 1] = sorted[half + i];
    }
  }
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
