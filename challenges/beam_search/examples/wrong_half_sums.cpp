// fails: half_f16 half_f16_logits half_bf16 half_bf16_logits
// The sums are kept in the precision of the rows, here the eight bits of bf16 for both kinds.
#define beam_search_with_options naive_with_options
#include "naive.cpp"
#undef beam_search_with_options

namespace {

class Variant final : public OptionSearch {
 public:
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

}  // namespace

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p,
                                        const bs_options* options, const assay_lm* lm, int32_t* seq,
                                        int32_t* len, double* acc, double* score, int32_t* finished,
                                        int32_t* n_out) {
  return run_search<Variant>(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});
}
