// fails: generate_on
// A second prompt starts again at position 0, although the cache goes on.
#define tt_generate naive_tt_generate
#include "naive.cpp"
#undef tt_generate

thread_local Index start = 0;  // of the prompt at hand

struct Bug : Decoder {
  using Decoder::Decoder;
  Index angle_position(Index position) const override { return position - start; }
};

extern "C" int tt_generate(assay_ctx* ctx, const tt_config* c, const void* blob,
                           const tt_generation* g, const uint16_t* tokens, float* state,
                           uint16_t* generated) {
  if (!valid_generation(c, g) || g->position == 0)
    return naive_tt_generate(ctx, c, blob, g, tokens, state, generated);
  start = g->position;
  return generate_with<Bug>(ctx, *c, static_cast<const std::uint8_t*>(blob), *g, tokens, state,
                            generated);
}
