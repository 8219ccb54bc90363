// fails: patience_above_1 patience_script
// Only the finished beams that are in the list at the moment count for patience, not those that
// were dropped.
#define beam_search_with_options naive_with_options
#include "naive.cpp"
#undef beam_search_with_options

namespace {

class Variant final : public OptionSearch {
 public:
  using OptionSearch::OptionSearch;

  bool patience_ends(std::int32_t b) const override {
    std::int64_t n = 0;
    each_beam(b, [&](const Beam& beam) { n += beam.finished; });
    return o_.patience > 0 && static_cast<double>(n) >= o_.patience * static_cast<double>(K_);
  }
};

}  // namespace

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p,
                                        const bs_options* options, const assay_lm* lm, int32_t* seq,
                                        int32_t* len, double* acc, double* score, int32_t* finished,
                                        int32_t* n_out) {
  return run_search<Variant>(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});
}
