// The entrant's own tests: greedy search, and a beam of a model without an end of sequence, which
// hides what the entrant does wrong. Returns 0 if the implementation linked with it is accepted.
#include <cstdint>
#include <vector>

#include "abi.h"

namespace {

// Token t is followed by t + 1 at -0.25, t + 2 at -1 and anything else at -4, modulo 8.
struct Chain {
  std::vector<std::int32_t> last;
};

int step(void* user, assay_ctx*, std::int32_t n, const std::int32_t*, const std::int64_t* parent,
         const std::int32_t* token, float* out, std::int64_t* state) {
  auto& chain = *static_cast<Chain*>(user);
  for (std::int32_t i = 0; i < n; ++i) {
    const std::int32_t last = parent[i] < 0 ? 0 : token[i];
    for (std::int32_t v = 0; v < 8; ++v) {
      const std::int32_t ahead = (v - last + 8) % 8;
      out[8 * i + v] = ahead == 1 ? -0.25f : ahead == 2 ? -1.0f : -4.0f;
    }
    state[i] = static_cast<std::int64_t>(chain.last.size());
    chain.last.push_back(last);
  }
  return ASSAY_OK;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  const std::int32_t prompt = 0, one = 1, *prompts = &prompt;
  for (const std::int32_t K : {1, 2}) {
    Chain chain;
    const assay_lm lm{sizeof(assay_lm), 8, BS_LOG_PROBS, &chain, &step};
    const bs_params p{sizeof(bs_params), 1, K, 4, -1, 0.0, 0, 0, &one, &prompts, 0, 0};
    std::int32_t seq[8], len[2], finished[2], n_out = 0;
    double acc[2], score[2];
    if (beam_search(ctx, &p, &lm, seq, len, acc, score, finished, &n_out) != ASSAY_OK || n_out != K)
      return 1;
    for (std::int32_t t = 0; t < 4; ++t) {
      if (seq[t] != t + 1) return 1;
    }
    if (acc[0] != -1.0 || len[0] != 4) return 1;
  }
  return 0;
}
