// fails: nan_unvisited
// All logits are scanned for NaN before the walk.
#define dv_accept naive_dv_accept
#include "naive.cpp"
#undef dv_accept

extern "C" int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,
                         const int32_t* parent, const int32_t* token, const float* root_logits,
                         const float* node_logits, const int32_t* eos, const int32_t* budget,
                         const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc,
                         int32_t* bonus) {
  const int status = naive_dv_accept(ctx, B, V, cu, parent, token, root_logits, node_logits, eos,
                                     budget, sampling, acc_node, n_acc, bonus);
  if (status != ASSAY_OK) return status;
  for (std::int64_t i = 0; B > 0 && i < cu[B] * V; ++i) {
    if (std::isnan(node_logits[i])) return ASSAY_EINVAL;
  }
  return ASSAY_OK;
}
