// fails: eos_costs eos_counts
// The end of a sequence costs nothing and has no length: the candidate's sum is set to its beam's
// on eos. Seen in generated code; reviewers took the resulting score of 0.0 for a property of the
// test.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  Candidate extended(const Beam& beam, std::int32_t parent, std::int32_t token,
                     double logp) const override {
    if (token != p_.eos) return Search::extended(beam, parent, token, logp);
    return {beam.acc, score(beam.acc, beam.len), parent, token, beam.len + 1};
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
