// fails: reorder_cache
// The states of the surviving beams are gathered in place: a state is overwritten before the beams
// after it have read it. Found in the beam code of a well-known inference engine.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  void replace(std::int32_t b, std::int64_t n) override {
    Beam* list = list_.data() + b * K_;
    const Scratch<std::int64_t> states(ctx_, K_);
    for (std::int64_t i = 0; i < size_[b]; ++i) states[i] = list[i].state;
    Search::replace(b, n);
    for (std::int64_t j = 0; j < n; ++j) list[j].state = states[j] = states[best_[j].parent];
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
