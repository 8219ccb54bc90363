// fails: logits_mode
// The softmax of the logits is formed without subtracting their maximum, and overflows before its
// logarithm.
#define beam_search naive_beam_search
#include "naive.cpp"
#undef beam_search

namespace {

class Variant final : public Search {
 public:
  using Search::Search;

  double shift(const float* row) const override {
    if (lm_.kind == BS_LOG_PROBS) return 0;
    float sum = 0;
    for (std::int32_t v = 0; v < lm_.V; ++v) sum += std::exp(row[v]);
    return static_cast<double>(std::log(sum));
  }
};

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search<Variant>(ctx, p, lm, {seq, len, acc, score, finished, n_out});
}
