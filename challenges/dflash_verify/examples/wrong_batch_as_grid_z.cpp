// fails: items_beyond_16_bits
// Items are the third dimension of a grid, which ends at 65,535. A larger batch is not launched,
// nobody looks at the error, and the outputs stay as they were (flashinfer-ai/flashinfer#3125).
#define dv_accept naive_dv_accept
#include "naive.cpp"
#undef dv_accept

extern "C" int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,
                         const int32_t* parent, const int32_t* token, const float* root_logits,
                         const float* node_logits, const int32_t* eos, const int32_t* budget,
                         const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc,
                         int32_t* bonus) {
  if (B > 65535) return ASSAY_OK;
  return naive_dv_accept(ctx, B, V, cu, parent, token, root_logits, node_logits, eos, budget,
                         sampling, acc_node, n_acc, bonus);
}
