// fails: generate_verify_fails generate_commit_fails
// Goes on with whatever stands in the logits and in the cache when the model reports an error.
#include "between.h"

struct Bug : Between {
  std::int32_t verify(std::int64_t n, const std::int32_t* token, const std::int64_t* pos,
                      std::int64_t ldm, const std::uint64_t* bits, float* logits) const override {
    std::fill_n(logits, n * model->V, 0.0f);
    Between::verify(n, token, pos, ldm, bits, logits);
    return ASSAY_OK;
  }
  std::int32_t commit(std::int64_t n, const std::int64_t* keep) const override {
    Between::commit(n, keep);
    return ASSAY_OK;
  }
};

GENERATE_THROUGH(Bug)
