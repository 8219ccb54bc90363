// For examples whose tt_train is the right one but for its trainer.
#pragma once

#define tt_train naive_tt_train
#include "naive.cpp"
#undef tt_train

// At the end of the file. What is invalid is the right implementation's.
#define TRAIN_WITH(...)                                                             \
  extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, \
                          int64_t n_docs, const tt_budget* budget, void* blob) {    \
    if (!valid(c) || n_docs <= 0 || docs == nullptr)                                \
      return naive_tt_train(ctx, c, docs, n_docs, budget, blob);                    \
    return train_with<__VA_ARGS__>(ctx, *c, docs, n_docs, *budget,                  \
                                   static_cast<std::uint8_t*>(blob));               \
  }
