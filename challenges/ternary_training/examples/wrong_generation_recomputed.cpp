// fails: generate_long generate_on
// Runs the whole document again for every token, and keeps nothing for a continuation.
#define tt_generate naive_tt_generate
#include "naive.cpp"
#undef tt_generate

extern "C" int tt_generate(assay_ctx* ctx, const tt_config* c, const void* blob,
                           const tt_generation* g, const uint16_t* tokens, float* state,
                           uint16_t* generated) {
  if (!valid_generation(c, g) || g->position > 0)
    return naive_tt_generate(ctx, c, blob, g, tokens, state, generated);
  const Layout at(*c);
  Pass pass(ctx, at);
  const Buffer w(ctx, at.size), room(ctx, c->T);
  if (w.data == nullptr || room.data == nullptr || !pass.ready()) return ASSAY_ENOMEM;
  const auto* bytes = static_cast<const std::uint8_t*>(blob);
  for (Index i = 0; i < at.matrices / kBlock; ++i)
    dequantize_block(bytes + i * kBytes, w + i * kBlock);
  std::memcpy(w + at.matrices, bytes + at.matrices / kBlock * kBytes,
              static_cast<std::size_t>(at.size - at.matrices) * 4);
  auto* document = reinterpret_cast<std::uint16_t*>(room.data);
  for (Index doc = 0; doc < g->n_docs; ++doc) {
    std::fill_n(document, c->T, std::uint16_t{0});
    std::copy_n(tokens + doc * g->n_new, g->n_new, document);
    for (Index i = 0; i < g->steps; ++i) {
      const Index at_token = g->n_new + i;
      const float* logits = pass.run(w, document) + (at_token - 1) * c->V;
      document[at_token] =
          static_cast<std::uint16_t>(std::max_element(logits, logits + c->V) - logits);
      generated[doc * g->steps + i] = document[at_token];
    }
  }
  return ASSAY_OK;
}
