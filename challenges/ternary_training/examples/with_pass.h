// For examples that run the model otherwise, in training and for logits.
#pragma once

#define tt_logits naive_tt_logits
#include "with_trainer.h"
#undef tt_logits

// At the end of the file.
#define RUN_WITH(ModelPass)                                                                      \
  TRAIN_WITH(Trainer<ModelPass>)                                                                 \
  extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob,                 \
                           const uint16_t* docs, int64_t n_docs, float* logits) {                \
    if (!valid(c)) return ASSAY_EINVAL;                                                          \
    return logits_with<ModelPass>(ctx, *c, static_cast<const std::uint8_t*>(blob), docs, n_docs, \
                                  logits);                                                       \
  }
