// fails: logits_far_below_0
// The largest logit is searched for from FLT_MIN, which is above 0. Logits far below it all
// underflow in the sum of exponentials (mit-han-lab/tinyengine#107).
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  double shift(const float* row) const override {
    if (lm_.kind == BS_LOG_PROBS) return 0;
    float most = std::numeric_limits<float>::min();
    double sum = 0;
    for (std::int32_t v = 0; v < lm_.V; ++v) most = std::max(most, row[v]);
    for (std::int32_t v = 0; v < lm_.V; ++v) sum += std::exp(static_cast<double>(row[v] - most));
    return static_cast<double>(most) + std::log(sum);
  }
};

ANSWER_WITH(Bug)
