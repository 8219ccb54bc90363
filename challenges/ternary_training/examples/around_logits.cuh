// naive.cu with room for a mistake around tt_logits, for the examples in CUDA: each defines
// answer().
#pragma once

#define tt_logits naive_tt_logits
#include "naive.cu"
#undef tt_logits

// The arguments of tt_logits.
struct Reading {
  assay_ctx* ctx;
  const tt_config* c;
  const void* blob;
  const std::uint16_t* docs;
  std::int64_t n_docs;
  float* logits;

  int naive() const { return naive_tt_logits(ctx, c, blob, docs, n_docs, logits); }
};

// What tt_logits does.
static int answer(const Reading&);

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob,
                         const std::uint16_t* docs, std::int64_t n_docs, float* logits) {
  return answer({ctx, c, blob, docs, n_docs, logits});
}

// naive() for another configuration.
template <class Change>
int with_config(Reading call, Change change) {
  if (call.c == nullptr) return ASSAY_EINVAL;
  tt_config changed = *call.c;
  change(changed);
  call.c = &changed;
  return call.naive();
}
