// fails: close_logits
// The largest probabilities win, and close logits have the same after rounding: then the lower
// index wins, not the larger logit. As ViperEkura/AstrAI#57.
#include "selection.h"

static int answer(const Call& call) {
  return with_winners(call, [](const float* x, const stk_params& p) {
    const float max = *std::max_element(x, x + p.V);
    std::vector<float> probabilities;
    for (std::int64_t j = 0; j < p.V; ++j)
      probabilities.push_back(std::exp((x[j] - max) / p.temperature));
    std::vector<std::int32_t> best(static_cast<std::size_t>(p.V));
    std::iota(best.begin(), best.end(), 0);
    std::sort(best.begin(), best.end(), Before{probabilities.data()});
    if (std::ssize(best) > p.K) best.resize(static_cast<std::size_t>(p.K));
    return best;
  });
}
