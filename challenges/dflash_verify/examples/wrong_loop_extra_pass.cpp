// fails: golden_200 multi_cycle_3 generate_chain
// Runs the model once more in every cycle to obtain the token after the accepted ones, which the
// first pass had computed already.
#include "between.h"

struct Bug : Between {
  std::int32_t verify(std::int64_t n, const std::int32_t* token, const std::int64_t* pos,
                      std::int64_t ldm, const std::uint64_t* bits, float* logits) const override {
    const std::int32_t status = Between::verify(n, token, pos, ldm, bits, logits);
    if (status != ASSAY_OK) return status;
    commit(0, nullptr);
    return Between::verify(n, token, pos, ldm, bits, logits);
  }
};

GENERATE_THROUGH(Bug)
