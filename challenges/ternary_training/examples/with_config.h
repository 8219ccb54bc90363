// For examples whose tt_logits is the right one, but reads another configuration.
#pragma once

#define tt_logits naive_tt_logits
#include "naive.cpp"
#undef tt_logits

// At the end of the file. `misread` changes a tt_config.
#define LOGITS_OF(misread)                                                        \
  extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob,  \
                           const uint16_t* docs, int64_t n_docs, float* logits) { \
    if (!valid(c)) return ASSAY_EINVAL;                                           \
    tt_config kept = *c;                                                          \
    misread(kept);                                                                \
    return naive_tt_logits(ctx, &kept, blob, docs, n_docs, logits);               \
  }
