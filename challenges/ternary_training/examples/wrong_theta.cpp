// fails: rope_interleaved
// The base of the angles of longer contexts, 10^6, whatever the configuration says.
#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

struct Wrong : Pass {
  Wrong(assay_ctx* ctx, const Layout& layout) : Pass(ctx, wrong(layout)) {}
  static Layout wrong(Layout layout) {
    layout.c.theta = 1e6f;
    return layout;
  }
};

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || docs == nullptr)
    return naive_tt_train(ctx, c, docs, n_docs, budget, blob);
  return train_with<Trainer<Wrong>>(ctx, *c, docs, n_docs, *budget,
                                    static_cast<std::uint8_t*>(blob));
}
