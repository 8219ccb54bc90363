// fails: sampling_b_impossible_token
// Accepts a drafted token if u q <= p, where u q must be less: a uniform number of 0 accepts even
// what the target never emits.
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
  if (status != ASSAY_OK || sampling == nullptr || sampling->mode != DV_SAMPLE_IID) return status;
  const Scratch<double> p(ctx, V);
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int32_t* const end = parent + cu[b + 1];
    const std::int32_t* const root = std::find(parent + cu[b], end, -1);
    if (n_acc[b] > 0 || root == end) continue;
    softmax(root_logits + std::int64_t{b} * V, V, sampling->temperature, p.data());
    const std::int32_t x = token[root - parent];
    const double q = sampling->root_q[std::int64_t{b} * V + x];
    if (sampling->uniform[b * sampling->u_item] * q > p.data()[x]) continue;
    acc_node[cu[b]] = static_cast<std::int32_t>(root - parent - cu[b]);
    n_acc[b] = 1;
  }
  return ASSAY_OK;
}
