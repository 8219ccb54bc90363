// fails: qk_norm_order
// Rotates first and norms then: the same length, but the norm's weights meet other components.
#define tt_logits naive_tt_logits
#include "naive.cpp"
#undef tt_logits

struct Bug : Pass {
  using Pass::Pass;
  // The norm's weights are applied after the rotation that would follow.
  void head_norm(Index heads, const float* x, const float* w, float* y, float* r) const override {
    const Buffer ones(kept_.ctx, c_.hd);
    std::fill_n(ones.data, c_.hd, 1.0f);
    Pass::head_norm(heads, x, ones, y, r);
    Pass::rope(heads, y, 1);
    for (Index i = 0; i < T_ * heads * c_.hd; ++i) y[i] *= w[i % c_.hd];
  }
  void rope(Index, float*, float) const override {}
};

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob, const uint16_t* docs,
                         int64_t n_docs, float* logits) {
  if (!valid(c)) return ASSAY_EINVAL;
  return logits_with<Bug>(ctx, *c, static_cast<const std::uint8_t*>(blob), docs, n_docs, logits);
}
