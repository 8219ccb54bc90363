// fails: frozen_score
// The scores of all beams are recomputed each step with the current step as their length, those of
// finished beams too.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  Candidate frozen(const Beam& beam, std::int32_t parent) const override {
    return {beam.acc, score(beam.acc, static_cast<std::int32_t>(step_)), parent, -1, beam.len};
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
