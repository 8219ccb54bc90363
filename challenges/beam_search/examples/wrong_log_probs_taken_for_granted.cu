// fails: logits_mode logits_far_below_0
// Logits are taken for log-probabilities.
#include "around_search.cuh"

static int answer(const Search& call) {
  if (!call.has_items()) return call.naive();
  assay_lm changed = *call.lm;
  changed.kind = BS_LOG_PROBS;
  Search other = call;
  other.lm = &changed;
  return other.naive();
}
