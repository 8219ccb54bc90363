// fails: patience_1 patience_half patience_script
// The search goes on until nothing can change the answer.
#define beam_search_with_options naive_with_options
#include "naive.cpp"
#undef beam_search_with_options

namespace {

class Variant final : public OptionSearch {
 public:
  using OptionSearch::OptionSearch;

  bool patience_ends(std::int32_t) const override { return false; }
};

}  // namespace

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p,
                                        const bs_options* options, const assay_lm* lm, int32_t* seq,
                                        int32_t* len, double* acc, double* score, int32_t* finished,
                                        int32_t* n_out) {
  return run_search<Variant>(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});
}
