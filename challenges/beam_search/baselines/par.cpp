// The expert implementation for a CPU.
//
// Napkin arithmetic. B = 1, K = 64, V = 50257: a step reads 64 rows, 12.9 MB, and keeps 64 of 3.2 M
// candidates. Reading once at 20 to 40 GB/s (the rows come from the last-level cache or from
// memory) takes 0.3 to 0.6 ms; a score for each candidate, one addition and one division, would
// take 3.2 M * 4 ns = 13 ms on a core, and sorting them much more. So:
//   Candidates of a step have one length: their order by score is that by sum, so only the sums are
//   compared, and a penalty is divided by K times, not K*V times.
//   A value matters only if it exceeds what the K-th best sum so far leaves for its row. Blocks of
//   256 values are passed over by their maximum, 16 values an instruction: 0.06 ns a value from the
//   cache. Of n values in random order K (1 + ln(n / K)) = 760 get through and cost an insertion
//   each, 0.05 ms.
//
//   Nothing is written but back-pointers, 8 bytes a beam and step; texts are read off them last.
//
//   Halves are widened a block at a time, into the cache. Of what may not follow a beam a short
//   list is made, and only a value that gets through is looked up in it.
//
//   Threads take rows in turn; each keeps its own best K of every item that it meets, in ascending
//   order of parents and tokens, so that an equal candidate that comes later is never better.
//
// The limit that binds is the bandwidth of the rows. Measured on two cores of an EPYC with AVX-512,
// the rows in the last-level cache: 0.29 ms a step of 8 x 8 x 32000 (28 GB/s), 0.53 ms of 1 x 64 x
// 50257 (24 GB/s) and 0.25 ms of 64 x 4 x 4096 on one core; 0.29, 0.47 and 0.23 ms on two, as one
// core nearly exhausts the bandwidth and a thread costs 50 us. So only larger steps, and logits
// with their exponentials, are worth a second thread.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>

#include "abi.h"
#include "common/arguments.h"
#include "par/search.h"

namespace {

int run_search(assay_ctx* ctx, const bs_params* p, const bs_options* options, const assay_lm* lm,
               const Outputs& to) {
  if (!valid(p, lm, to) || !valid_options(*p, options, *lm)) return ASSAY_EINVAL;
  if (options->groups > 1) return ASSAY_ENOTSUP;
  try {
    Search search(ctx, *p, *lm, *options);
    return search.failed() ? ASSAY_ENOMEM : search.run(to);
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search(ctx, p, &kNoOptions, lm, {seq, len, acc, score, finished, n_out});
}

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p,
                                        const bs_options* options, const assay_lm* lm, int32_t* seq,
                                        int32_t* len, double* acc, double* score, int32_t* finished,
                                        int32_t* n_out) {
  return run_search(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});
}
