// For examples whose dv_accept is the right one but for what a mistake changes.
#pragma once

#define dv_accept naive_dv_accept
#include "naive.cpp"
#undef dv_accept

namespace {

// A call of dv_accept.
struct Acceptance {
  assay_ctx* ctx;
  std::int32_t B, V;
  const std::int64_t* cu;
  const std::int32_t *parent, *token;
  const float *root_logits, *node_logits;
  const std::int32_t *eos, *budget;
  const dv_sampling* sampling;
  std::int32_t *acc_node, *n_acc, *bonus;

  int rightly() const {
    return naive_dv_accept(ctx, B, V, cu, parent, token, root_logits, node_logits, eos, budget,
                           sampling, acc_node, n_acc, bonus);
  }
  std::int32_t mode() const { return sampling == nullptr ? DV_GREEDY : sampling->mode; }
  // The logits after the root of an item.
  const float* root(std::int32_t b) const { return root_logits + std::int64_t{b} * V; }
};

}  // namespace

// At the end of the file.
#define ACCEPT_BY(accept)                                                                         \
  extern "C" int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,               \
                           const int32_t* parent, const int32_t* token, const float* root_logits, \
                           const float* node_logits, const int32_t* eos, const int32_t* budget,   \
                           const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc,        \
                           int32_t* bonus) {                                                      \
    return accept(Acceptance{ctx, B, V, cu, parent, token, root_logits, node_logits, eos, budget, \
                             sampling, acc_node, n_acc, bonus});                                  \
  }
