// fails: tokens_beyond_15_bits
// Tokens are kept in signed 16 bits: those from 32,768 on become negative and are clamped to 0
// (urvashik/knnlm#6).
#include <vector>

#define tt_logits naive_tt_logits
#include "naive.cpp"
#undef tt_logits

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob, const uint16_t* docs,
                         int64_t n_docs, float* logits) {
  if (!valid(c) || n_docs <= 0 || docs == nullptr)
    return naive_tt_logits(ctx, c, blob, docs, n_docs, logits);
  std::vector<std::uint16_t> kept(docs, docs + n_docs * c->T);
  for (std::uint16_t& token : kept) token = token > 32767 ? 0 : token;
  return naive_tt_logits(ctx, c, blob, kept.data(), n_docs, logits);
}
