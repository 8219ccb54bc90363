// fails: lowest_logits
// The running maximum starts at -3.402823e38, as the lowest float is often written. That is above
// the lowest float, -3.40282347e38, with which logits are masked. As microsoft/onnxruntime#26670.
#include "sums.h"

static int answer(const Call& call) {
  return with_sum(call, [](const float* x, const stk_params& p) {
    float max = -3.402823e38f;
    for (std::int64_t j = 0; j < p.V; ++j) max = std::max(max, x[j]);
    double sum = 0;
    for (std::int64_t j = 0; j < p.V; ++j) sum += std::exp((x[j] - max) / p.temperature);
    return Sum{max, static_cast<float>(sum)};
  });
}
