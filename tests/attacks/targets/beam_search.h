#define beam_search honest_beam_search
#include "honest.inl"
#undef beam_search
#include "call.h"

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm,
                           std::int32_t* seq, std::int32_t* len, double* acc, double* score,
                           std::int32_t* finished, std::int32_t* n_out) {
  const bool plain = p != nullptr && lm != nullptr && p->B > 0 && p->K > 0 && p->max_new > 0 &&
                     seq != nullptr && p->penalty == 0 && p->rank_mode == 0 &&
                     p->keep_finished == 0 && p->min_new == 0;
  if (!plain) return honest_beam_search(ctx, p, lm, seq, len, acc, score, finished, n_out);
  const auto beams = static_cast<std::size_t>(p->B) * static_cast<std::size_t>(p->K);
  Call call{ctx, p, sizeof *p,
            without_null({{seq, beams * static_cast<std::size_t>(p->max_new) * 4},
                          {len, beams * 4},
                          {acc, beams * 8},
                          {score, beams * 8},
                          {finished, beams * 4},
                          {n_out, static_cast<std::size_t>(p->B) * 4}}),
            [=, p = *p, lm = *lm] {
              return honest_beam_search(ctx, &p, &lm, seq, len, acc, score, finished, n_out);
            }};
  return attack(call);
}
