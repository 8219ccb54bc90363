// The plain implementation: what the interface says, step by step, on one thread.
#include <cmath>
#include <cstdint>

#include "abi.h"
#include "common/arguments.h"
#include "naive/options.h"
#include "naive/search.h"

namespace {

template <class S>
int run_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, const Outputs& to) {
  if (!valid(p, lm, to)) return ASSAY_EINVAL;
  S search(ctx, *p, *lm);
  return search.failed() ? ASSAY_ENOMEM : search.run(to);
}

template <class S>
int run_search(assay_ctx* ctx, const bs_params* p, const bs_options* options, const assay_lm* lm,
               const Outputs& to) {
  if (!valid(p, lm, to) || !valid_options(*p, options, *lm)) return ASSAY_EINVAL;
  S search(ctx, *p, *lm, *options);
  return search.failed() ? ASSAY_ENOMEM : search.run(to);
}

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Search>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p,
                                        const bs_options* options, const assay_lm* lm, int32_t* seq,
                                        int32_t* len, double* acc, double* score, int32_t* finished,
                                        int32_t* n_out) {
  return run_search<OptionSearch>(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});
}
