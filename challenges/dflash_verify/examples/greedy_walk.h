// For examples whose dv_accept is the right one but for the walk down the tree without sampling.
#pragma once

#include "accept.h"

namespace {

// The right walk over one item; mistakes replace parts of it.
struct Walk {
  virtual ~Walk() = default;

  std::int32_t b = 0;
  const std::int64_t* cu = nullptr;  // of all items
  Tree tree{};
  std::int32_t V = 0, eos = -1, budget = INT32_MAX;
  const float *root = nullptr, *node = nullptr;  // logits
  std::int32_t* acc = nullptr;
  std::int32_t n_acc = 0, bonus = -1;

  const float* logits_after(std::int64_t i) const { return i < 0 ? root : node + i * V; }
  std::int32_t best(std::int64_t i) const { return argmax(logits_after(i), V); }

  // What the model says after a node, or after the root for -1.
  virtual std::int32_t choice(std::int32_t cur) const { return best(cur); }
  virtual bool matches(std::int64_t i, std::int32_t token) const { return tree.token[i] == token; }
  // The child of cur that holds the token, or -1.
  virtual std::int32_t child(std::int32_t cur, std::int32_t token) const {
    for (std::int64_t i = cur + 1; i < tree.n; ++i) {
      if (tree.parent[i] == cur && matches(i, token)) return static_cast<std::int32_t>(i);
    }
    return -1;
  }
  virtual void accept(std::int32_t i) { acc[n_acc++] = i; }
  virtual bool has_room() const { return n_acc < budget; }
  virtual bool ends(std::int32_t i) const { return tree.token[i] == eos; }
  // Where no child of cur holds the token.
  virtual std::int32_t bonus_after(std::int32_t, std::int32_t token) const { return token; }

  virtual void run() {
    std::int32_t cur = -1;
    while (has_room()) {
      const std::int32_t token = choice(cur), next = child(cur, token);
      if (next < 0) {
        bonus = bonus_after(cur, token);
        return;
      }
      accept(next);
      if (ends(next)) return;
      cur = next;
    }
  }
};

// Arguments are checked, and sampling is done, by the right implementation.
template <class Bug>
int accept_with(const Acceptance& a) {
  const int status = a.rightly();
  if (status != ASSAY_OK || a.mode() != DV_GREEDY) return status;
  for (std::int32_t b = 0; b < a.B; ++b) {
    const std::int64_t begin = a.cu[b], n = a.cu[b + 1] - begin;
    std::fill_n(a.acc_node + begin, n, -1);
    Bug walk;
    walk.b = b;
    walk.cu = a.cu;
    walk.tree = {n, a.parent + begin, a.token + begin};
    walk.V = a.V;
    if (a.eos != nullptr) walk.eos = a.eos[b];
    if (a.budget != nullptr) walk.budget = a.budget[b];
    walk.root = a.root(b);
    walk.node = a.node_logits + begin * a.V;
    walk.acc = a.acc_node + begin;
    walk.run();
    a.n_acc[b] = walk.n_acc;
    a.bonus[b] = walk.bonus;
  }
  return ASSAY_OK;
}

}  // namespace

// At the end of the file.
#define ACCEPT_WITH(Bug) ACCEPT_BY(accept_with<Bug>)
