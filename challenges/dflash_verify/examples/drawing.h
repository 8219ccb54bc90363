// For examples whose dv_accept in mode A is the right one but for how a bonus that follows the
// prefix at once is drawn.
#pragma once

#define dv_accept naive_dv_accept
#include "naive.cpp"
#undef dv_accept

namespace {

// An item whose first draw is the bonus.
struct Drawing {
  const float* logits;
  std::int32_t V;
  double temperature;
  double u;   // the uniform number
  double* p;  // room for V numbers
};

template <class Draw>
int draw_with(Draw bonus_of, assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,
              const int32_t* parent, const int32_t* token, const float* root_logits,
              const float* node_logits, const int32_t* eos, const int32_t* budget,
              const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc, int32_t* bonus) {
  const int status = naive_dv_accept(ctx, B, V, cu, parent, token, root_logits, node_logits, eos,
                                     budget, sampling, acc_node, n_acc, bonus);
  if (status != ASSAY_OK || sampling == nullptr || sampling->mode != DV_SAMPLE_TREE) return status;
  const Scratch<double> p(ctx, V);
  for (std::int32_t b = 0; b < B; ++b) {
    if (n_acc[b] > 0 || bonus[b] < 0) continue;
    bonus[b] = bonus_of(Drawing{root_logits + std::int64_t{b} * V, V, sampling->temperature,
                                sampling->uniform[b * sampling->u_item], p.data()});
  }
  return ASSAY_OK;
}

}  // namespace

// At the end of the file.
#define DRAW_WITH(bonus_of)                                                                       \
  extern "C" int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu,               \
                           const int32_t* parent, const int32_t* token, const float* root_logits, \
                           const float* node_logits, const int32_t* eos, const int32_t* budget,   \
                           const dv_sampling* sampling, int32_t* acc_node, int32_t* n_acc,        \
                           int32_t* bonus) {                                                      \
    return draw_with(bonus_of, ctx, B, V, cu, parent, token, root_logits, node_logits, eos,       \
                     budget, sampling, acc_node, n_acc, bonus);                                   \
  }
