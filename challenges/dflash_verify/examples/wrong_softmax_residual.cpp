// fails: lossless_chi2_b sampling_b
// Puts the residual max(0, p - q) through a softmax where it must only be divided by its sum.
#define dv_accept naive_dv_accept
#include "naive.cpp"
#undef dv_accept

namespace {

std::int32_t after_rejection(double* p, const float* q, std::int32_t V, std::int64_t roots,
                             double u) {
  for (std::int64_t t = 0; t < roots; ++t) {
    double sum = 0;
    for (std::int32_t j = 0; j < V; ++j) sum += p[j] = std::exp(std::max(0.0, p[j] - q[j]));
    for (std::int32_t j = 0; j < V; ++j) p[j] /= sum;
  }
  return draw(p, V, u);
}

}  // namespace

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
    // Only what follows when every root is rejected is wrong.
    if (n_acc[b] > 0 || bonus[b] < 0) continue;
    std::int64_t roots = 0;
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i) roots += parent[i] < 0 ? 1 : 0;
    softmax(root_logits + std::int64_t{b} * V, V, sampling->temperature, p.data());
    const double u = sampling->uniform[b * sampling->u_item + roots];
    bonus[b] = after_rejection(p.data(), sampling->root_q + std::int64_t{b} * V, V, roots, u);
  }
  return ASSAY_OK;
}
