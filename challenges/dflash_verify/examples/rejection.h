// For examples whose sampled dv_accept is the right one but for what it draws when every root is
// rejected.
#pragma once

#define dv_accept naive_dv_accept
#include "naive.cpp"
#undef dv_accept

namespace {

// An item of which every root was rejected.
struct Rejection {
  double* p;       // the target's distribution; may be changed
  const float* q;  // the draft's
  std::int32_t V;
  std::int64_t roots;
  double u;  // the uniform number for what is drawn now
};

template <class Draw>
int reject_with(Draw draw_after, assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,
                const int32_t* parent, const int32_t* token, const float* root_logits,
                const float* node_logits, const int32_t* eos, const int32_t* budget,
                const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc, int32_t* bonus) {
  const int status = naive_dv_accept(ctx, B, V, cu, parent, token, root_logits, node_logits, eos,
                                     budget, sampling, acc_node, n_acc, bonus);
  if (status != ASSAY_OK || sampling == nullptr || sampling->mode != DV_SAMPLE_IID) return status;
  const Scratch<double> p(ctx, V);
  for (std::int32_t b = 0; b < B; ++b) {
    if (n_acc[b] > 0 || bonus[b] < 0) continue;
    const std::int64_t roots = std::count(parent + cu[b], parent + cu[b + 1], -1);
    softmax(root_logits + std::int64_t{b} * V, V, sampling->temperature, p.data());
    bonus[b] = draw_after(Rejection{p.data(), sampling->root_q + std::int64_t{b} * V, V, roots,
                                    sampling->uniform[b * sampling->u_item + roots]});
  }
  return ASSAY_OK;
}

}  // namespace

// At the end of the file.
#define REJECT_WITH(draw_after)                                                                   \
  extern "C" int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,               \
                           const int32_t* parent, const int32_t* token, const float* root_logits, \
                           const float* node_logits, const int32_t* eos, const int32_t* budget,   \
                           const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc,        \
                           int32_t* bonus) {                                                      \
    return reject_with(draw_after, ctx, B, V, cu, parent, token, root_logits, node_logits, eos,   \
                       budget, sampling, acc_node, n_acc, bonus);                                 \
  }
