// fails: eos_not_in_topK
// Whatever is unfinished in the last step is ended with an eos, likely or not.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  bool allowed(std::int32_t token, const Beam& beam) const override {
    if (p_.eos >= 0 && step_ == T_) return token == p_.eos;
    return Search::allowed(token, beam);
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
