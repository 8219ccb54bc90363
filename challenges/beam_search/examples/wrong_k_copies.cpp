// fails: first_step_dup same_token_two_parents
// The search starts from K copies of the empty beam, which find the same continuations K times.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  void start(std::int32_t b) override {
    Search::start(b);
    std::fill_n(list_.data() + b * K_, K_, Beam{});
    size_[b] = static_cast<std::int32_t>(K_);
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
