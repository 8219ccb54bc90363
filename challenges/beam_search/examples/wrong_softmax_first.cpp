// fails: logits_mode
// The softmax of the logits is formed without subtracting their maximum, and overflows before its
// logarithm.
#include "with_search.h"

struct Bug : Search {
  using Search::Search;

  double shift(const float* row) const override {
    if (lm_.kind == BS_LOG_PROBS) return 0;
    float sum = 0;
    for (std::int32_t v = 0; v < lm_.V; ++v) sum += std::exp(row[v]);
    return static_cast<double>(std::log(sum));
  }
};

ANSWER_WITH(Bug)
