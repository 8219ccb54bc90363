// fails: eos_mid
// The end of sequence is not looked for among accepted tokens.
#define dv_accept naive_dv_accept
#include "naive.cpp"
#undef dv_accept

#include <vector>

namespace {

struct Item {
  Tree tree;
  std::int32_t V, eos, budget;
  const float *root, *node;  // logits
  std::vector<std::int32_t> path;
  std::int32_t bonus = -1;

  const float* logits(std::int64_t n) const { return n < 0 ? root : node + n * V; }
  std::int32_t best(std::int64_t n) const { return argmax(logits(n), V); }
  bool full() const { return static_cast<std::int32_t>(path.size()) >= budget; }
};

void walk(Item& item) {
  std::int32_t cur = -1;
  for (;;) {
    if (item.full()) return;
    const std::int32_t g = item.best(cur);
    const std::int32_t child = item.tree.child_with(cur, g);
    if (child < 0) {
      item.bonus = g;
      return;
    }
    item.path.push_back(child);

    cur = child;
  }
}

}  // namespace

extern "C" int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,
                         const int32_t* parent, const int32_t* token, const float* root_logits,
                         const float* node_logits, const int32_t* eos, const int32_t* budget,
                         const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc,
                         int32_t* bonus) {
  const int status = naive_dv_accept(ctx, B, V, cu, parent, token, root_logits, node_logits, eos,
                                     budget, sampling, acc_node, n_acc, bonus);
  if (status != ASSAY_OK || (sampling != nullptr && sampling->mode != DV_GREEDY)) return status;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    Item item{{n, parent + cu[b], token + cu[b]},
              V,
              eos != nullptr ? eos[b] : -1,
              budget != nullptr ? budget[b] : INT32_MAX,
              root_logits + std::int64_t{b} * V,
              node_logits + cu[b] * V,
              {}};
    walk(item);
    if (static_cast<std::int64_t>(item.path.size()) > n)
      item.path.resize(static_cast<std::size_t>(n));
    std::fill(acc_node + cu[b], acc_node + cu[b + 1], -1);
    std::copy(item.path.begin(), item.path.end(), acc_node + cu[b]);
    n_acc[b] = static_cast<std::int32_t>(item.path.size());
    bonus[b] = item.bonus;
  }
  return ASSAY_OK;
}
