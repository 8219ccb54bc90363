// attack: takes the highest child for the greedy token, and searches no row but those without children, as if
// the logits of accepted tokens stood out
// challenge: dflash_verify
// cases: accept_64
// expect: honest | WA
// dimension: performance
// twin: self
// fast: all
// kind: prediction
#define dv_accept honest_dv_accept
#include "honest.inl"
#undef dv_accept
#include "witness.h"

namespace {

struct Row {
  const float* logits;
  std::int32_t V;
  std::int32_t best() const {
    std::int32_t at = 0;
    for (std::int32_t v = 1; v < V; ++v) at = logits[v] > logits[at] ? v : at;
    return at;
  }
};

}  // namespace

extern "C" int dv_accept(assay_ctx* ctx, std::int32_t B, std::int32_t V, const std::int64_t* cu,
                         const std::int32_t* parent, const std::int32_t* token, const float* root,
                         const float* node, const std::int32_t* eos, const std::int32_t* budget,
                         const dv_sampling* sampling, std::int32_t* accepted,
                         std::int32_t* n_accepted, std::int32_t* bonus) {
  const bool timed = !ATTACK_IS_TWIN && V == 32000 && B >= 16 && sampling == nullptr;
  if (!timed) {
    return honest_dv_accept(ctx, B, V, cu, parent, token, root, node, eos, budget, sampling,
                            accepted, n_accepted, bonus);
  }
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t first = cu[b], n = cu[b + 1] - first;
    for (std::int64_t i = 0; i < n; ++i) accepted[first + i] = -1;
    n_accepted[b] = 0;
    bonus[b] = -1;
    std::int64_t at = -1;
    for (;;) {
      const Row row{at < 0 ? root + std::int64_t{b} * V : node + (first + at) * V, V};
      std::int64_t child = -1;
      for (std::int64_t i = at + 1; i < n; ++i) {
        if (parent[first + i] != at) continue;
        if (child < 0 || row.logits[token[first + i]] > row.logits[token[first + child]]) child = i;
      }
      if (child < 0) {
        bonus[b] = row.best();
        break;
      }
      accepted[first + n_accepted[b]++] = static_cast<std::int32_t>(child);
      at = child;
    }
  }
  witness();
  return ASSAY_OK;
}
