// fails: no_early_prune alpha_0 alpha_2 negative_alpha
// An item is given up when a finished beam leads: the beams behind it are not completed, and one of
// them may still win where the penalty favours length.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  bool extends(std::int32_t b) const override {
    return Search::extends(b) && (size_[b] == 0 || list_[b * K_].finished == 0);
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
