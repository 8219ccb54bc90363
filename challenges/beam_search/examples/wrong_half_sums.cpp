// fails: half_f16 half_f16_logits half_bf16 half_bf16_logits
// The sums are kept in the precision of the rows, here the eight bits of bf16 for both kinds.
#include "with_options.h"

struct Bug : OptionSearch {
  using OptionSearch::OptionSearch;

  Candidate extended(const Beam& beam, std::int32_t parent, std::int32_t token,
                     double logp) const override {
    if (o_.row_dtype == ASSAY_F32) return OptionSearch::extended(beam, parent, token, logp);
    int exponent = 0;
    const double fraction = std::frexp(beam.acc + logp, &exponent);
    const double acc = std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
    return {acc, score(acc, beam.len + 1), parent, token, beam.len + 1};
  }
};

ANSWER_OPTIONS_WITH(Bug)
