// fails: accept_ragged
// Finds an item's logits at b times the size of the first tree: right while all trees are equal.
#include "greedy_walk.h"

namespace {

void walk(Item& it) {
  std::int32_t cur = -1;
  while (it.n_acc < it.budget) {
    const std::int32_t g = it.best(cur), child = it.tree.child_with(cur, g);
    if (child < 0) {
      it.bonus = g;
      return;
    }
    it.accept(child);
    if (g == it.eos) return;
    cur = child;
  }
}

}  // namespace

extern "C" int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,
                         const int32_t* parent, const int32_t* token, const float* root_logits,
                         const float* node_logits, const int32_t* eos, const int32_t* budget,
                         const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc,
                         int32_t* bonus) {
  // Arguments are checked, and sampling is done, by the right implementation.
  const int status = naive_dv_accept(ctx, B, V, cu, parent, token, root_logits, node_logits, eos,
                                     budget, sampling, acc_node, n_acc, bonus);
  if (status != ASSAY_OK || (sampling != nullptr && sampling->mode != DV_GREEDY)) return status;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    std::fill_n(acc_node + cu[b], n, -1);
    Item item{{n, parent + cu[b], token + cu[b]},
              V,
              eos != nullptr ? eos[b] : -1,
              budget != nullptr ? budget[b] : INT32_MAX,
              root_logits + std::int64_t{b} * V,
              node_logits + std::min(b * cu[1], cu[b]) * V,
              acc_node + cu[b]};
    walk(item);
    n_acc[b] = item.n_acc;
    bonus[b] = item.bonus;
  }
  return ASSAY_OK;
}
