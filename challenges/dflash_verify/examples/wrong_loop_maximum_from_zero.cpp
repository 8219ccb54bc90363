// fails: generate_negative_logits
// The loop looks for the largest logit above 0 and takes token 0 where there is none.
#include "between.h"

struct Bug : Between {
  std::int32_t verify(std::int64_t n, const std::int32_t* token, const std::int64_t* pos,
                      std::int64_t ldm, const std::uint64_t* bits, float* logits) const override {
    const std::int32_t status = Between::verify(n, token, pos, ldm, bits, logits);
    if (status != ASSAY_OK) return status;
    for (std::int64_t i = 0; i < n * model->V; ++i) logits[i] = std::max(logits[i], 0.0f);
    return status;
  }
};

GENERATE_THROUGH(Bug)
