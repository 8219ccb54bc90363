// fails: mixed_finish
// The loop ends when one item has ended: a flag for the batch in place of one for each item.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  bool extends(std::int32_t) const override {
    for (std::int32_t b = 0; b < p_.B; ++b) {
      if (!Search::extends(b)) return false;
    }
    return true;
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
