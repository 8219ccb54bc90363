// caught: memorise_probe label_shift
// A model prepared at home, here on a language of its own: the documents are not looked at.
#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

#include <vector>

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t*, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0) return ASSAY_EINVAL;
  std::vector<std::uint16_t> own(static_cast<std::size_t>(n_docs * c->T));
  for (std::size_t i = 1; i < own.size(); ++i) {
    own[i] = static_cast<std::uint16_t>((own[i - 1] * 5 + 3) % c->V);
  }
  return naive_tt_train(ctx, c, own.data(), n_docs, budget, blob);
}
