// fails: exact_ties exact_ties_at_0 exact_ties_coarse greedy_K1 greedy_K1_penalty
// Equal candidates stand in the order in which a heap lets go of them: the last one first.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  bool before(const Candidate& a, const Candidate& b) const override {
    if (key(a) != key(b)) return key(a) > key(b);
    if (a.parent != b.parent) return a.parent > b.parent;
    return a.token > b.token;
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
