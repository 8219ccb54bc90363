// fails: generate_on
// The last generated token never gets into the cache, so that a continuation misses it.
#define tt_generate naive_tt_generate
#include "naive.cpp"
#undef tt_generate

extern "C" int tt_generate(assay_ctx* ctx, const tt_config* c, const void* blob,
                           const tt_generation* g, const uint16_t* tokens, float* state,
                           uint16_t* generated) {
  const int status = naive_tt_generate(ctx, c, blob, g, tokens, state, generated);
  if (status != ASSAY_OK || g->steps == 0) return status;
  const Layout at(*c);
  const Index last = g->position + g->n_new + g->steps - 1;
  for (Index i = 0; i < g->n_docs * c->L * 2; ++i) {
    std::fill_n(state + (i * c->T + last) * at.narrow, at.narrow, 0.0f);
  }
  return ASSAY_OK;
}
