// For examples whose beam_search_with_options is the right one but for their search.
#pragma once

#define beam_search_with_options naive_with_options
#include "naive.cpp"
#undef beam_search_with_options

// At the end of the file.
#define ANSWER_OPTIONS_WITH(Search)                                                                \
  extern "C" int beam_search_with_options(                                                         \
      assay_ctx* ctx, const bs_params* p, const bs_options* options, const assay_lm* lm,           \
      int32_t* seq, int32_t* len, double* acc, double* score, int32_t* finished, int32_t* n_out) { \
    return run_search<Search>(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});       \
  }
