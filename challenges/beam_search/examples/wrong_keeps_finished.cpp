// fails: finished_evicted raw_vs_score raw_vs_score_random
// A finished beam keeps its place for good, however many better ones come: "never remove finished
// beams".
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  bool before(const Candidate& a, const Candidate& b) const override {
    if ((a.token < 0) != (b.token < 0)) return a.token < 0;
    return Search::before(a, b);
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
