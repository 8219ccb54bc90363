// naive.cu with room for a mistake around dv_accept, for the examples in CUDA: each defines
// answer().
#pragma once

#define dv_accept naive_dv_accept
#include "naive.cu"
#undef dv_accept

// The arguments of dv_accept.
struct Acceptance {
  assay_ctx* ctx;
  std::int32_t B, V;
  const std::int64_t* cu;
  const std::int32_t *parent, *token;
  const float *root_logits, *node_logits;
  const std::int32_t *eos, *budget;
  const dv_sampling* sampling;
  std::int32_t *acc_node, *n_acc, *bonus;

  int naive() const {
    return naive_dv_accept(ctx, B, V, cu, parent, token, root_logits, node_logits, eos, budget,
                           sampling, acc_node, n_acc, bonus);
  }
};

// What dv_accept does.
static int answer(Acceptance);

extern "C" int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,
                         const int32_t* parent, const int32_t* token, const float* root_logits,
                         const float* node_logits, const int32_t* eos, const int32_t* budget,
                         const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc,
                         int32_t* bonus) {
  return answer({ctx, B, V, cu, parent, token, root_logits, node_logits, eos, budget, sampling,
                 acc_node, n_acc, bonus});
}
