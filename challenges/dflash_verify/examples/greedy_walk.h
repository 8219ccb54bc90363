// For examples whose dv_accept is the right one but for the walk down the tree without sampling.
#pragma once

#define dv_accept naive_dv_accept
#include "naive.cpp"
#undef dv_accept

namespace {

// One item and its results.
struct Item {
  std::int32_t b;
  const std::int64_t* cu;  // of all items
  Tree tree;
  std::int32_t V, eos, budget;
  const float *root, *node;
  std::int32_t *acc, n_acc = 0, bonus = -1;

  std::int32_t best(std::int64_t i) const { return argmax(i < 0 ? root : node + i * V, V); }
  void accept(std::int32_t i) { acc[n_acc++] = i; }
};

// Arguments are checked, and sampling is done, by the right implementation.
template <class Walk>
int accept_with(Walk walk, assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,
                const int32_t* parent, const int32_t* token, const float* root_logits,
                const float* node_logits, const int32_t* eos, const int32_t* budget,
                const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc, int32_t* bonus) {
  const int status = naive_dv_accept(ctx, B, V, cu, parent, token, root_logits, node_logits, eos,
                                     budget, sampling, acc_node, n_acc, bonus);
  if (status != ASSAY_OK || (sampling != nullptr && sampling->mode != DV_GREEDY)) return status;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    std::fill_n(acc_node + cu[b], n, -1);
    Item item{b,
              cu,
              {n, parent + cu[b], token + cu[b]},
              V,
              eos != nullptr ? eos[b] : -1,
              budget != nullptr ? budget[b] : INT32_MAX,
              root_logits + std::int64_t{b} * V,
              node_logits + cu[b] * V,
              acc_node + cu[b]};
    walk(item);
    n_acc[b] = item.n_acc;
    bonus[b] = item.bonus;
  }
  return ASSAY_OK;
}

}  // namespace

// At the end of the file.
#define ACCEPT_GREEDILY_WITH(walk)                                                                \
  extern "C" int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,               \
                           const int32_t* parent, const int32_t* token, const float* root_logits, \
                           const float* node_logits, const int32_t* eos, const int32_t* budget,   \
                           const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc,        \
                           int32_t* bonus) {                                                      \
    return accept_with(walk, ctx, B, V, cu, parent, token, root_logits, node_logits, eos, budget, \
                       sampling, acc_node, n_acc, bonus);                                         \
  }
