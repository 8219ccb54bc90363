// For examples whose beam_search is the right one but for its search.
#pragma once

#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

// At the end of the file.
#define ANSWER_WITH(Search)                                                                        \
  extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq, \
                             int32_t* len, double* acc, double* score, int32_t* finished,          \
                             int32_t* n_out) {                                                     \
    return run_search<Search>(ctx, p, lm, {seq, len, acc, score, finished, n_out});                \
  }
