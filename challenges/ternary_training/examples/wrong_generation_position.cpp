// fails: generate_on
// A second prompt starts again at position 0, although the cache goes on.
#define tt_generate naive_tt_generate
#include "naive.cpp"
#undef tt_generate

struct Wrong : Decoder {
  using Decoder::Decoder;
  Index start = 0;
  Index angle_position(Index position) const override { return position - start; }
};

extern "C" int tt_generate(assay_ctx* ctx, const tt_config* c, const void* blob,
                           const tt_generation* g, const uint16_t* tokens, float* state,
                           uint16_t* generated) {
  if (!valid_generation(c, g) || g->position == 0) {
    return naive_tt_generate(ctx, c, blob, g, tokens, state, generated);
  }
  const Layout at(*c);
  Wrong decoder(ctx, at);
  if (!decoder.ready()) return ASSAY_ENOMEM;
  decoder.start = g->position;
  decoder.read(static_cast<const std::uint8_t*>(blob));
  for (Index doc = 0; doc < g->n_docs; ++doc) {
    float* cache = state + doc * c->L * 2 * c->T * at.narrow;
    Index position = g->position;
    const float* logits = nullptr;
    for (Index i = 0; i < g->n_new; ++i)
      logits = decoder.step(tokens[doc * g->n_new + i], position++, cache);
    for (Index i = 0; i < g->steps; ++i) {
      const auto best =
          static_cast<std::uint16_t>(std::max_element(logits, logits + c->V) - logits);
      generated[doc * g->steps + i] = best;
      logits = decoder.step(best, position++, cache);
    }
  }
  return ASSAY_OK;
}
