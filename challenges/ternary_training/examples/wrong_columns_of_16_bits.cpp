// fails: columns_beyond_16_bits
// The width of the feed-forward layers is kept in 16 bits: of 65,664 columns 128 are left.
#define tt_logits naive_tt_logits
#include "naive.cpp"
#undef tt_logits

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob, const uint16_t* docs,
                         int64_t n_docs, float* logits) {
  if (!valid(c)) return ASSAY_EINVAL;
  tt_config kept = *c;
  kept.ff = static_cast<std::uint16_t>(c->ff);
  return naive_tt_logits(ctx, &kept, blob, docs, n_docs, logits);
}
