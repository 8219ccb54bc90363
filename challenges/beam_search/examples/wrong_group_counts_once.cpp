// fails: groups_of_one
// A token of an earlier group costs the penalty once, however many beams took it.
#define beam_search_with_options naive_with_options
#include "naive.cpp"
#undef beam_search_with_options

namespace {

class Variant final : public OptionSearch {
 public:
  using OptionSearch::OptionSearch;

  double key(const Candidate& c) const override {
    if (c.token < 0 || taken_[c.token] == 0) return Search::key(c);
    const double acc = c.acc - o_.diversity;
    return p_.rank_mode == 0 ? score(acc, c.len) : acc;
  }
};

}  // namespace

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p,
                                        const bs_options* options, const assay_lm* lm, int32_t* seq,
                                        int32_t* len, double* acc, double* score, int32_t* finished,
                                        int32_t* n_out) {
  return run_search<Variant>(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});
}
